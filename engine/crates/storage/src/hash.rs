//! The hash of keys: one for all stores, since processes that share one must agree.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

const STATE: FixedState = FixedState::with_seed(0x6361_6368_656d_6172);

#[inline]
pub fn of(key: &[u8]) -> u64 {
    STATE.hash_one(key)
}
