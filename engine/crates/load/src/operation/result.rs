//! The result of an operation, and its timestamps.

use cachemark_tape::Verb;

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Timeout,
    Connection,
    Server,
    Client,
    Protocol,
}

impl Failure {
    pub const ALL: [Failure; 5] = [
        Failure::Timeout,
        Failure::Connection,
        Failure::Server,
        Failure::Client,
        Failure::Protocol,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Failure::Timeout => "timeout",
            Failure::Connection => "connection",
            Failure::Server => "server",
            Failure::Client => "client",
            Failure::Protocol => "protocol",
        }
    }
}

/// The counts of one completed operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    pub hits: u32,
    pub misses: u32,
    pub not_stored: u32,
    pub keys: u32,
    pub value_bytes: u64,
    pub key_bytes: u64,
}

/// The kind of an operation, and its timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    pub verb: Verb,
    pub noreply: bool,
    pub due_ns: u64,
    pub sent_ns: u64,
    pub now_ns: u64,
}
