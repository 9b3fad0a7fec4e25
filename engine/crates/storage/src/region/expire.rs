//! Removal of items that have expired: where their memory is needed, or by and by.

use crate::items::slot::Slot;
use crate::memory::atomics::LOCKED;
use crate::memory::layout::NONE;
use crate::region::segment_state::state;
use crate::region::writer::Writer;

/// How many segments are searched for expired items before one is emptied.
const SWEEPS_MAX: usize = 4;

impl Writer<'_> {
    /// Remove an item that has expired and that nobody asked for.
    pub fn drop_expired(&mut self, number: usize, slot: Slot) {
        self.local.counters.expired_unfetched += u64::from(!slot.fetched());
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
            match due.filter(|segment| expires(segment) <= self.now_s) {
                Some(segment) => {
                    let expired = self.sweep_segment(segment);
                    self.local.counters.reclaimed += expired;
                }
                None => return,
            }
        }
    }

    /// The same for one segment. Returns how many items have expired.
    pub fn sweep_if_due(&mut self, segment: u32) -> u64 {
        if self.region.may_have_expired(segment, self.now_s) {
            self.sweep_segment(segment)
        } else {
            0
        }
    }

    /// Remove the expired items of a segment, and note when its next item expires. Returns how many there were.
    fn sweep_segment(&mut self, segment: u32) -> u64 {
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
                        self.drop_expired(number, slot);
                        expired += 1;
                    }
                    Some(_) => next_s = next_s.min(expires_s),
                    None => {}
                }
            }
            offset += raw.bytes();
        }
        meta.earliest_expiry_s.store(next_s, LOCKED);
        expired
    }
}
