//! The main thread's view of a lane that plays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::window::clock_ns;

/// A call that outlasts every time-out by this much will never return.
const LOST_NS: u64 = 5_000_000_000;

#[derive(Default)]
pub struct Watch {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// The begin of the current call; 0 between calls.
    pub called_ns: AtomicU64,
}

impl Watch {
    /// Whether a call has outlasted its time-out so long that it will never return.
    pub fn is_lost(&self, timeout_ns: u64) -> bool {
        let called_ns = self.called_ns.load(Relaxed);
        called_ns > 0 && clock_ns() > called_ns + 2 * timeout_ns + LOST_NS
    }
}

/// A counter that only its lane writes.
pub fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}
