//! Fleets, rings and queues beside plays of them.

mod common;
mod fleets;
mod queue;
mod rings;
mod scalability;
