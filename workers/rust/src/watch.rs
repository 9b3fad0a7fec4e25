//! What the main thread sees of a lane that plays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::window::clock_ns;

#[derive(Default)]
pub struct Watch {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// When the call that is going on began; 0 between calls.
    pub called_ns: AtomicU64,
}

impl Watch {
    /// Whether a call has been going on for longer than this.
    pub fn is_lost(&self, longest_ns: u64) -> bool {
        let called_ns = self.called_ns.load(Relaxed);
        called_ns > 0 && clock_ns() > called_ns + longest_ns
    }
}

/// A counter that only its lane writes.
pub fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}
