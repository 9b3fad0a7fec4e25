//! Captures of packets.

mod captures;
mod outcomes;
