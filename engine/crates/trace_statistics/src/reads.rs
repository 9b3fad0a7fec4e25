//! Reads and their results.

use serde::Serialize;

/// Reads, and what came of them where the trace says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    pub hits: u64,
    pub misses: u64,
    pub unknown: u64,
}

impl Reads {
    pub(crate) fn add(&mut self, succeeded: Option<bool>, count: u64) {
        match succeeded {
            Some(true) => self.hits += count,
            Some(false) => self.misses += count,
            None => self.unknown += count,
        }
    }

    pub(crate) fn join(&mut self, other: Reads) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.unknown += other.unknown;
    }
}
