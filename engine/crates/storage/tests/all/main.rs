//! The store through its public interface, in threads and processes.

mod entries;
mod limits;
mod model;
mod processes;
mod rules;
mod threads;
