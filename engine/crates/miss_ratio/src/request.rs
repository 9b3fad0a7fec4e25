//! A request of a trace, without what no cache looks at.

use std::hash::BuildHasher;

use cachemark_trace::file::Record;
use foldhash::quality::FixedState;

/// The kind of a request, as far as caches tell requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    Set,
    /// A set that is no fill, whatever came before.
    Update,
    /// Stores if there is nothing.
    Add,
    /// Stores if there is something: replace, cas.
    Replace,
    Delete,
    Touch,
    /// Reads and writes what is there, and changes no size: incr, decr.
    Change,
}

impl Operation {
    /// `None`: an operation that is not simulated.
    fn of(name: &str) -> Option<Operation> {
        match name {
            "get" | "gets" | "mget" | "fetch" => Some(Operation::Get),
            "gat" | "gats" | "touch" => Some(Operation::Touch),
            "set" => Some(Operation::Set),
            "add" => Some(Operation::Add),
            "replace" | "cas" => Some(Operation::Replace),
            "delete" => Some(Operation::Delete),
            "incr" | "decr" => Some(Operation::Change),
            _ => None,
        }
    }
}

/// A request on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub hash: u64,
    pub at_s: u32,
    pub ttl_s: u32,
    /// The size of the value; `NO_SIZE` if the trace does not have it.
    pub value_bytes: u32,
    pub key_bytes: u8,
    pub operation: Operation,
    /// A read that hit, or a write that was done.
    pub succeeded: Option<bool>,
}

/// A size that the trace does not have.
pub const NO_SIZE: u32 = u32::MAX;

impl Request {
    /// The request of a record, when the trace is played `speed` times as fast: then expiry times are shorter too.
    /// `None` for an operation that is not simulated.
    pub fn of(record: &Record<'_>, speed: f64) -> Option<Request> {
        let operation = Operation::of(record.operation)?;
        let hash = FixedState::default().hash_one(record.key);
        let key_bytes = record.key_bytes.unwrap_or(record.key.len() as u32);
        Some(Request {
            hash,
            at_s: (record.at_ns.unwrap_or(0) as f64 / 1e9 / speed) as u32,
            ttl_s: (f64::from(record.ttl_s) / speed).ceil() as u32,
            value_bytes: record.length.unwrap_or(NO_SIZE),
            key_bytes: key_bytes.min(250) as u8,
            operation,
            succeeded: record.succeeded,
        })
    }
}
