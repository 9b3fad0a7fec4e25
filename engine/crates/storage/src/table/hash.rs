//! The hash of keys. It has a fixed seed, because processes that share a store must agree.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

const STATE: FixedState = FixedState::with_seed(0x6361_6368_656d_6172);

#[inline]
pub fn of(key: &[u8]) -> u64 {
    STATE.hash_one(key)
}
