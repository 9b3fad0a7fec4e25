//! Recovery of a region after its writer was killed.
//!
//! The table is correct, because a slot is one word and is written last. All counts are made again from it.

use crate::items::slot::{Slot, tag};
use crate::memory::atomics::{LOCKED, SHARED};
use crate::region::segment_state::{Queue, state};
use crate::region::writer::Writer;
use crate::table::hash;

impl Writer<'_> {
    /// Make the region consistent again. Only the item that the dead writer was storing may be lost.
    pub fn recover(&mut self) {
        let region = self.region;
        let head = region.head();
        // Segments that were being opened or emptied become full, or free.
        [Queue::Small, Queue::Main].into_iter().for_each(|queue| self.close_segment(queue));
        self.segments()
            .for_each(|segment| region.segment_meta(segment).live_bytes.store(0, LOCKED));
        let (mut items, mut bytes) = (0, 0);
        let buckets = head.buckets.load(LOCKED) as usize;
        for bucket in 0..buckets {
            for number in region.chain(bucket) {
                let slot = region.load_slot(number);
                if slot.is_live() && self.is_consistent(bucket, number, slot) {
                    let taken = region.raw_item(slot).bytes();
                    let meta = region.segment_meta(region.segment_of(slot.offset()));
                    meta.live_bytes.store(meta.live_bytes.load(LOCKED) + taken as u32, LOCKED);
                    items += 1;
                    bytes += taken as u64;
                } else if slot != Slot::EMPTY {
                    region.slot(number).store(0, SHARED);
                }
            }
        }
        head.items.store(items, LOCKED);
        head.bytes.store(bytes, LOCKED);
        self.retire_incomplete();
        if let Some(lock) = self.process_lock.as_mut() {
            lock.mark_consistent();
        }
    }

    /// Whether a slot leads to a complete item of this bucket, and no slot before it leads to the same key.
    fn is_consistent(&self, bucket: usize, number: usize, slot: Slot) -> bool {
        let region = self.region;
        let layout = &region.layout;
        let offset = slot.offset();
        if offset >= layout.segments * layout.segment {
            return false;
        }
        let segment = region.segment_of(offset);
        let meta = region.segment_meta(segment);
        let end = segment as usize * layout.segment + meta.used_bytes.load(LOCKED) as usize;
        let in_queue = matches!(self.state(segment), state::SMALL | state::MAIN);
        let raw = region.raw_item(slot);
        if !in_queue || offset + raw.bytes() > end {
            return false;
        }
        // SAFETY: the item is inside the used part, and the lock is held.
        let key = unsafe { raw.key() };
        let hash = hash::of(key);
        let (one, two) = region.buckets_of(hash, region.head().buckets.load(LOCKED));
        // SAFETY: as above; an inconsistent slot was emptied already, or comes later.
        let same = |other: Slot| other == slot || unsafe { region.raw_item(other).key() } == key;
        let first = region.search(hash, same).map(|(found, _)| found);
        slot.has_tag(tag(hash)) && (bucket == one || bucket == two) && first == Some(number)
    }

    /// Free the segments of large items that are dead or were never completed.
    fn retire_incomplete(&self) {
        let mut segment = 0;
        while (segment as usize) < self.region.layout.segments {
            let meta = self.region.segment_meta(segment);
            let run = match self.state(segment) {
                state::SMALL | state::MAIN => meta.run_length.load(LOCKED).max(1),
                state::CONTINUATION => 0,
                _ => {
                    segment += 1;
                    continue;
                }
            };
            if run == 0 || (run > 1 && meta.live_bytes.load(LOCKED) == 0) {
                let last = (segment + run.max(1)).min(self.region.layout.segments as u32);
                (segment..last).for_each(|segment| self.retire(segment));
            }
            segment += run.max(1);
        }
    }
}
