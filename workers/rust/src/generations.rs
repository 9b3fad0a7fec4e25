//! Generations: different values of a key, which show whose write a read has brought.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::operation::Verb;

const WITH_GENERATION: &[Verb] = &[Verb::SET, Verb::GET, Verb::GETS, Verb::GAT, Verb::MGET];
/// The generations that a read may bring, by the generation in its record.
const RIGHT: [&[u8]; 4] = [&[0, 1, 2, 3], &[1, 2, 3], &[2, 1], &[3, 1]];

/// The generations of a tape, and whether the worker still checks them.
pub struct Generations {
    /// The number of lanes that the generations are for; 0: there are none.
    pub lanes: u64,
    /// A read may bring any generation: a failed write may still arrive.
    any: AtomicBool,
    /// A prefill has begun.
    filled: AtomicBool,
}

impl Generations {
    pub fn for_lanes(lanes: u64) -> Generations {
        Generations { lanes, any: AtomicBool::new(false), filled: AtomicBool::new(false) }
    }

    /// Whether a record of a verb may have a generation.
    pub fn has(&self, generation: u8, verb: Verb) -> bool {
        self.lanes > 0 && usize::from(generation) < RIGHT.len() && verb.is(WITH_GENERATION)
    }

    /// A phase begins: a second prefill means that the first failed, and its writes may still arrive.
    pub fn begin(&self, prefill: bool) {
        if prefill && self.filled.swap(true, Relaxed) {
            self.accept_any();
        }
    }

    /// They are for one way to play the tape.
    pub fn judge_if(&self, played_as_meant: bool) {
        if !played_as_meant {
            self.accept_any();
        }
    }

    /// From now on a read may bring any generation.
    pub fn accept_any(&self) {
        self.any.store(true, Relaxed);
    }

    /// The generations that a read may bring; `told` is the generation in its record.
    pub fn right(&self, told: u8) -> &'static [u8] {
        let told = if self.any.load(Relaxed) { 0 } else { told };
        if self.lanes == 0 { &[0] } else { RIGHT[usize::from(told)] }
    }
}

/// The offset of a value in the pool.
pub fn place(key: u32, length: usize, generation: u8, pool_bytes: usize) -> usize {
    let sum = u64::from(key) * 786_433 + length as u64 * 97 + u64::from(generation) * 262_147;
    (sum % (pool_bytes - length + 1) as u64) as usize
}
