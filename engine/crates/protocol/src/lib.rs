//! memcached's classic text protocol as pure functions over bytes: no I/O, no state, no clock.
//!
//! `request` is what a server reads, `encode` what a client writes, `reply` what a client reads.

pub mod encode;
pub mod reply;
pub mod request;
