//! Removal of items that have expired: where their memory is needed, or by and by.

use crate::items::slot::Slot;
use crate::memory::atomics::LOCKED;
use crate::memory::layout::NONE;
use crate::region::segment_state::{Queue, state};
use crate::region::writer::Writer;

/// How many segments are searched for expired items before one is emptied.
const SWEEPS_MAX: usize = 4;

/// On whose behalf expired items are removed, which are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remover {
    /// The store itself, because it needs memory or by and by.
    Store,
    /// A user who asked for it.
    Crawler,
}

impl Writer<'_> {
    /// Remove an item that has expired and that no request asked for.
    pub fn drop_expired(&mut self, number: usize, slot: Slot, remover: Remover) {
        self.count(self.region.raw_item(slot), |counters| {
            counters.expired_unfetched += u64::from(!slot.fetched());
            match remover {
                Remover::Store => counters.reclaimed += 1,
                Remover::Crawler => counters.crawler_reclaimed += 1,
            }
        });
        self.remove_slot(number, slot, Slot::EMPTY);
    }

    /// Remove expired items from a few segments, those that expired first.
    pub fn sweep_expired(&mut self) {
        for _ in 0..SWEEPS_MAX {
            let expires =
                |segment: &u32| self.region.segment_meta(*segment).earliest_expiry_s.load(LOCKED);
            let in_queue =
                |segment: &u32| matches!(self.state(*segment), state::SMALL | state::MAIN);
            let due = self.segments().filter(in_queue).min_by_key(expires);
            let Some(segment) = due.filter(|segment| expires(segment) <= self.now_s) else {
                return;
            };
            self.sweep_segment(segment, Remover::Store);
        }
    }

    /// The same for one segment. Returns how many items have expired.
    pub fn sweep_if_due(&mut self, segment: u32, remover: Remover) -> u64 {
        if self.region.may_have_expired(segment, self.now_s) {
            self.sweep_segment(segment, remover)
        } else {
            0
        }
    }

    /// Retire an open segment whose items have all expired, so that its memory is used from the beginning.
    fn retire_if_expired(&mut self, segment: u32, expired: u64) {
        let is_dead = self.region.segment_meta(segment).live_bytes.load(LOCKED) == 0;
        if expired > 0 && is_dead && self.is_open(segment) && !self.is_pinned(segment) {
            let queue =
                if self.state(segment) == state::SMALL { Queue::Small } else { Queue::Main };
            self.end_segment(queue);
        }
    }

    /// Remove the expired items of a segment, and note when its next item expires. Returns how many there were.
    fn sweep_segment(&mut self, segment: u32, remover: Remover) -> u64 {
        let mut expired = 0;
        let meta = self.region.segment_meta(segment);
        let begin = segment as usize * self.region.layout.segment;
        let (mut offset, end) = (begin, begin + meta.used_bytes.load(LOCKED) as usize);
        let mut next_s = NONE;
        while offset < end && meta.live_bytes.load(LOCKED) > 0 {
            let raw = self.raw_item_at(offset);
            let expires_s = raw.expires_s();
            if expires_s != 0 {
                // SAFETY: as in `empty_segment`.
                let hash = crate::table::hash::of(unsafe { raw.key() });
                match self.slot_at_offset(hash, offset) {
                    Some((number, slot)) if raw.expired(self.now_s) => {
                        self.drop_expired(number, slot, remover);
                        expired += 1;
                    }
                    Some(_) => next_s = next_s.min(expires_s),
                    None => {}
                }
            }
            offset += raw.bytes();
        }
        meta.earliest_expiry_s.store(next_s, LOCKED);
        self.retire_if_expired(segment, expired);
        expired
    }
}
