//! How a client is set up.

use std::time::Duration;

use super::address::Address;
use super::connection::ConnectionOptions;
use super::hashing::Hashing;

/// How the client is set up.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Several: keys are spread over them, see `hashing`.
    pub addresses: Vec<Address>,
    pub hashing: Hashing,
    pub connection_options: ConnectionOptions,
    pub threads: usize,
    /// In all, to each server; a multiple of `threads`.
    pub connections: usize,
    pub depth: usize,
    /// This client plays share `segment.0` of `segment.1`.
    pub segment: (u64, u64),
    pub timeout: Duration,
}
