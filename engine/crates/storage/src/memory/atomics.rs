//! How atomics of the store's memory are read and written.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The ordering of words that readers use without the lock. With sequential consistency, reads cost
/// no more than with a weaker ordering on x86-64 and on ARMv8.
pub const SHARED: Ordering = Ordering::SeqCst;
/// The ordering of words that only the holder of the lock uses, and of hints.
pub const LOCKED: Ordering = Ordering::Relaxed;

/// Add to a count that only the holder of the lock changes.
pub fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(LOCKED).wrapping_add(more), LOCKED);
}

/// Subtract from such a count.
pub fn subtract(count: &AtomicU64, less: u64) {
    count.store(count.load(LOCKED).saturating_sub(less), LOCKED);
}

/// Subtract from such a word.
pub fn subtract_u32(count: &AtomicU32, less: usize) {
    count.store(count.load(LOCKED).saturating_sub(less as u32), LOCKED);
}
