//! A region after its writer was killed: what the table leads to is true, since a slot is one word
//! and is written last; everything that was counted beside it is counted anew.

use crate::hash;
use crate::region::{OWN, SEEN};
use crate::segments::{Queue, state};
use crate::slot::Slot;
use crate::writer::Writer;

impl Writer<'_> {
    /// Make the region whole again. What the dead writer was about to store may be lost; nothing
    /// else is.
    pub fn mend(&mut self) {
        let region = self.region;
        let head = region.head();
        // Segments that were about to be opened or emptied are full, or free.
        [Queue::New, Queue::Main].into_iter().for_each(|queue| self.close(queue));
        self.segments().for_each(|segment| region.note(segment).live.store(0, OWN));
        let (mut items, mut bytes) = (0, 0);
        let buckets = head.buckets.load(OWN) as usize;
        for bucket in 0..buckets {
            for number in region.chain(bucket) {
                let slot = region.load(number);
                if slot.is_live() && self.is_true(bucket, number, slot) {
                    let taken = region.placed(slot).bytes();
                    let note = region.note(region.segment_of(slot.offset()));
                    note.live.store(note.live.load(OWN) + taken as u32, OWN);
                    items += 1;
                    bytes += taken as u64;
                } else if slot != Slot::EMPTY {
                    region.slot(number).store(0, SEEN);
                }
            }
        }
        head.items.store(items, OWN);
        head.bytes.store(bytes, OWN);
        self.retire_halves();
        if let Some(held) = self.between.as_mut() {
            held.mended();
        }
    }

    /// Whether a slot leads to a whole item of this bucket, and is the first that does.
    fn is_true(&self, bucket: usize, number: usize, slot: Slot) -> bool {
        let region = self.region;
        let layout = &region.layout;
        let offset = slot.offset();
        if offset >= layout.segments * layout.segment {
            return false;
        }
        let segment = region.segment_of(offset);
        let note = region.note(segment);
        let end = segment as usize * layout.segment + note.used.load(OWN) as usize;
        let kept = matches!(self.state(segment), state::NEW | state::MAIN);
        let placed = region.placed(slot);
        if !kept || offset + placed.bytes() > end {
            return false;
        }
        // SAFETY: inside the used part, and the lock is held.
        let key = unsafe { placed.key() };
        let hash = hash::of(key);
        let (one, two) = region.homes(hash, region.head().buckets.load(OWN));
        // SAFETY: as above; a slot that leads astray was emptied, or comes later.
        let same = |other: Slot| other == slot || unsafe { region.placed(other).key() } == key;
        let first = region.search(hash, same).map(|(found, _)| found);
        slot.has_tag(crate::slot::tag(hash))
            && (bucket == one || bucket == two)
            && first == Some(number)
    }

    /// Large items of which nothing lives, or which were never complete, are free.
    fn retire_halves(&self) {
        let mut segment = 0;
        while (segment as usize) < self.region.layout.segments {
            let note = self.region.note(segment);
            let run = match self.state(segment) {
                state::NEW | state::MAIN => note.run.load(OWN).max(1),
                state::REST => 0,
                _ => {
                    segment += 1;
                    continue;
                }
            };
            if run == 0 || (run > 1 && note.live.load(OWN) == 0) {
                let last = (segment + run.max(1)).min(self.region.layout.segments as u32);
                (segment..last).for_each(|segment| self.retire(segment));
            }
            segment += run.max(1);
        }
    }
}
