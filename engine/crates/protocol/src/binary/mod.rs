//! The binary protocol.

pub mod client;
pub mod request;
