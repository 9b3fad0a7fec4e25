//! The options of a client.

use std::time::Duration;

use super::address::Address;
use super::connection::ConnectionOptions;
use super::hashing::Hashing;
use super::refill::Refill;

/// The servers of a client, and its numbers of threads and connections.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// If there are several servers, `hashing` decides which one holds a key.
    pub addresses: Vec<Address>,
    pub hashing: Hashing,
    pub connection_options: ConnectionOptions,
    pub threads: usize,
    /// Connections to each server, over all threads: a multiple of `threads`.
    pub connections: usize,
    pub depth: usize,
    pub refill: Refill,
    /// This client plays part `segment.0` of `segment.1` of the tape.
    pub segment: (u64, u64),
    pub timeout: Duration,
}
