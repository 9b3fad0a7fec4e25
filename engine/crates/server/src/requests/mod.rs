//! A connection's state of its requests: the state between two of them, and those that have arrived already.

pub mod connection_state;
pub mod lookahead;
pub mod upload;
