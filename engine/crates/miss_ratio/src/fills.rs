//! The effect of a request on a cache with another content than the recorded server's.
//!
//! The rule for fills. A program that misses usually stores the value then: the log has a set behind the get. In a
//! larger cache some of these gets hit, and their sets would not have happened; in a smaller one other gets miss, whose
//! sets are not in the log.
//!
//! - A set is a fill if the request of its key before was a get that missed, or one of which the trace does not say
//!   what came of it. A fill stores only where the key is not: where the get hit, it would not have happened.
//! - A get that misses here and hit in the log is followed by a fill at once: with the size that the trace has for it,
//!   or had for it last, and with the key's last expiry time.
//! - A get that missed in the log is followed by nothing: its fill is in the log, or the program made none.
//! - A get of which the trace does not say what came of it is followed by a fill, if its value's size is known.
//! - All other sets store, whatever is there.

use std::hint::black_box;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use crate::request::{NO_SIZE, Operation, Request};

/// A value that a program stores after a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    pub value_bytes: u32,
    pub ttl_s: u32,
}

/// The task of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Read; after a miss, store the fill.
    Get(Option<Fill>),
    Set(Fill),
    /// Store if nothing is there: adds, and sets that are fills.
    Add(Fill),
    /// Store if something is there.
    Replace(Fill),
    Delete,
    /// A new expiry time for what is there.
    Touch(u32),
    /// A read that is not counted.
    Use,
}

/// A request as a cache sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub hash: u64,
    /// Keys are numbered in the order in which they come.
    pub number: u32,
    pub at_s: u32,
    pub key_bytes: u8,
    /// The size of the key's value, as far as the trace has told it.
    pub value_bytes: Option<u32>,
    pub task: Task,
}

/// How often the rule applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FillCounts {
    /// Sets that are fills, and sets that are not.
    pub fills: u64,
    pub updates: u64,
    /// Gets that are followed by a fill if they miss, and gets that are not.
    pub filled_gets: u64,
    pub unfilled_gets: u64,
    /// Of the gets that are not: those that hit, or of which nothing is known, whose size is not in the trace so far.
    pub gets_without_size: u64,
    /// Writes of unknown size, which store nothing.
    pub without_size: u64,
}

/// The known facts of a key.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    value_bytes: u32,
    /// In its highest bit, whether the request before was a get that did not hit, as far as the trace says.
    ttl_s: u32,
}

/// The bit of a miss.
const MISSED: u32 = 1 << 31;

/// Applies the rule to the requests of a trace, in their order.
#[derive(Default)]
pub struct Fills {
    /// A key's number is its place in the order in which keys came.
    keys: IndexMap<u64, Known, FixedState>,
    pub counts: FillCounts,
}

impl Fills {
    /// With memory for about this number of keys.
    pub(crate) fn for_keys(keys: usize) -> Fills {
        let keys = IndexMap::with_capacity_and_hasher(keys, FixedState::default());
        Fills { keys, ..Fills::default() }
    }

    /// Bring what is known of these keys near, all at once: one after the other, each would wait for the memory.
    pub(crate) fn approach(&self, hashes: impl Iterator<Item = u64>) {
        let near = |hash: u64| self.keys.get(&hash).map(|key| key.ttl_s);
        black_box(hashes.map(near).fold(None, Option::<u32>::max));
    }

    /// The step of the next request. `None` if it does nothing.
    pub fn step(&mut self, request: &Request) -> Option<Step> {
        let entry = self.keys.entry(request.hash);
        let number = entry.index() as u32;
        entry.or_insert_with(Known::new).step(number, request, &mut self.counts)
    }
}

impl Known {
    pub fn new() -> Known {
        Known { value_bytes: NO_SIZE, ttl_s: 0 }
    }

    /// The step of the next request of the key with this number. `None` if it does nothing.
    #[inline]
    pub fn step(
        &mut self,
        number: u32,
        request: &Request,
        counts: &mut FillCounts,
    ) -> Option<Step> {
        let key = self;
        let missed = key.ttl_s & MISSED != 0;
        key.ttl_s &= !MISSED;
        let ttl_s = request.ttl_s.min(!MISSED);
        let task = match request.operation {
            Operation::Get => {
                let hit = request.succeeded == Some(true);
                if request.value_bytes != NO_SIZE && (hit || request.value_bytes > 0) {
                    key.value_bytes = request.value_bytes;
                }
                if ttl_s > 0 {
                    key.ttl_s = ttl_s;
                }
                let fill = key.fill().filter(|_| request.succeeded != Some(false));
                counts.filled_gets += u64::from(fill.is_some());
                counts.unfilled_gets += u64::from(fill.is_none());
                let may_have_hit = request.succeeded != Some(false);
                counts.gets_without_size += u64::from(fill.is_none() && may_have_hit);
                key.ttl_s |= if hit { 0 } else { MISSED };
                Task::Get(fill)
            }
            Operation::Set | Operation::Update | Operation::Add | Operation::Replace => {
                if request.value_bytes != NO_SIZE {
                    key.value_bytes = request.value_bytes;
                }
                key.ttl_s = ttl_s;
                let Some(fill) = key.fill() else {
                    counts.without_size += 1;
                    return None;
                };
                match request.operation {
                    Operation::Replace => Task::Replace(fill),
                    Operation::Add => {
                        counts.fills += 1;
                        Task::Add(fill)
                    }
                    Operation::Set if missed => {
                        counts.fills += 1;
                        Task::Add(fill)
                    }
                    _ => {
                        counts.updates += 1;
                        Task::Set(fill)
                    }
                }
            }
            Operation::Delete => Task::Delete,
            Operation::Touch => {
                key.ttl_s = ttl_s;
                Task::Touch(ttl_s)
            }
            Operation::Change => Task::Use,
        };
        let value_bytes = key.fill().map(|fill| fill.value_bytes);
        let Request { hash, at_s, key_bytes, .. } = *request;
        Some(Step { hash, number, at_s, key_bytes, value_bytes, task })
    }

    fn fill(&self) -> Option<Fill> {
        let (value_bytes, ttl_s) = (self.value_bytes, self.ttl_s & !MISSED);
        (value_bytes != NO_SIZE).then_some(Fill { value_bytes, ttl_s })
    }
}
