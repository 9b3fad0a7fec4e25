//! Items that are never evicted, only expire or are deleted: their keys are so hot that they are always used again
//! before.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::choice::Stand;
use crate::deadlines::deadline_s;
use crate::fills::{FillCounts, Known, Step, Task};
use crate::hottest::HottestKey;
use crate::request::Request;
use crate::tally::Tally;

/// An item, or the place of one.
#[derive(Clone, Copy, Default)]
struct LastingItem {
    until_s: u32,
}

impl LastingItem {
    /// `Some(hit)` for a get.
    #[inline]
    fn play(&mut self, step: &Step) -> Option<bool> {
        let has = self.until_s > step.at_s;
        match (step.task, has) {
            (Task::Set(fill), _)
            | (Task::Add(fill) | Task::Get(Some(fill)), false)
            | (Task::Replace(fill), true) => self.until_s = deadline_s(step.at_s, fill.ttl_s),
            (Task::Touch(ttl_s), true) => self.until_s = deadline_s(step.at_s, ttl_s),
            (Task::Delete, _) => self.until_s = 0,
            _ => {}
        }
        matches!(step.task, Task::Get(_)).then_some(has)
    }
}

/// The hot keys of one cache.
#[derive(Default)]
pub(crate) struct LastingItems(HashMap<u64, LastingItem, FixedState>);

impl LastingItems {
    /// `Some(hit)` for a get.
    pub fn play(&mut self, step: &Step) -> Option<bool> {
        self.0.entry(step.hash).or_default().play(step)
    }
}

/// The keys that last in every cache of a plan. They are played once for all caches.
pub(crate) struct LastingKeys {
    /// By the number of the hot key.
    keys: Vec<(Known, LastingItem)>,
    /// Their bytes in a memory.
    pub bytes: u64,
    pub tally: Tally,
}

impl LastingKeys {
    pub fn new(hot: &[HottestKey]) -> LastingKeys {
        LastingKeys {
            keys: vec![(Known::new(), LastingItem::default()); hot.len()],
            bytes: hot.iter().map(|key| u64::from(key.charged_bytes)).sum(),
            tally: Tally::default(),
        }
    }

    pub fn has(&self, number: u32) -> bool {
        (number as usize) < self.keys.len()
    }

    #[inline]
    pub fn play(&mut self, number: u32, request: &Request, rule: &mut FillCounts, counts: bool) {
        let (known, item) = &mut self.keys[number as usize];
        let Some(step) = known.step(number, request, rule) else { return };
        if let Some(hit) = item.play(&step).filter(|_| counts) {
            self.tally.count(step.hash, Stand::HOT, !hit, step.value_bytes);
        }
    }
}
