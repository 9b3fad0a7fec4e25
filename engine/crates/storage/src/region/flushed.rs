//! Items that a flush removed and that somebody asks for afterwards, which are counted. Their bytes stay in their
//! segments until these are used again: until then they can be recognized.

use std::sync::atomic::Ordering;

use crate::items::slot::{Slot, tag};
use crate::memory::atomics::{LOCKED, SHARED};
use crate::memory::layout::BUCKET_SLOTS;
use crate::region::Region;
use crate::region::segment_state::state;
use crate::region::writer::Writer;

impl Region {
    /// Whether a flush may have removed the item of this key. Without the lock this is a guess.
    #[inline]
    pub fn may_have_flushed(&self, hash: u64) -> bool {
        self.was_flushed.load(Ordering::Relaxed) && self.flushed_slots(hash).next().is_some()
    }

    /// The slots that may be of such an item: their numbers and their words.
    fn flushed_slots(&self, hash: u64) -> impl Iterator<Item = (usize, Slot)> {
        let (one, two) = self.buckets_of(hash, self.head().buckets.load(LOCKED));
        let numbers = [one, two].into_iter().flat_map(|at| at * 8..at * 8 + BUCKET_SLOTS);
        numbers
            .map(|number| (number, self.load_slot(number)))
            .filter(move |(_, slot)| slot.is_flushed() && slot.has_tag(tag(hash)))
    }
}

impl Writer<'_> {
    /// All segments so far are flushed.
    pub fn note_flush(&mut self) {
        self.local.flushed_until = self.region.head().next_sequence.load(LOCKED);
        self.region.was_flushed.store(!self.region.shared, Ordering::Relaxed);
    }

    /// Count the item of this key at the first request for it, if a flush removed it.
    pub fn take_flushed(&mut self, hash: u64, key: &[u8]) {
        if !self.region.may_have_flushed(hash) {
            return;
        }
        let region = self.region;
        let is_unused = |slot: Slot| {
            let meta = region.segment_meta(region.segment_of(slot.offset()));
            meta.sequence.load(LOCKED) < self.local.flushed_until
                && meta.state.load(LOCKED) != state::UNBACKED
        };
        // SAFETY: the item was complete, and its segment was not used again.
        let same = |slot: Slot| is_unused(slot) && unsafe { region.raw_item(slot).key() } == key;
        let found = region.flushed_slots(hash).find(|(_, slot)| same(*slot));
        if let Some((number, _)) = found {
            region.slot(number).store(Slot::EMPTY.0, SHARED);
            self.local.counters.get_flushed += 1;
        }
    }
}
