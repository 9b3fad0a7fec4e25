//! Eviction: S3-FIFO (J. Yang et al., SOSP 2023), on segments instead of single items.
//!
//! A new item is written to the small queue, which has a tenth of the memory. The main queue has the
//! rest. Each queue gives up its oldest segment first:
//!
//! - An item of the small queue moves to the main queue if it was read, and is evicted if not.
//! - An item of the main queue moves to the end of that queue once for each of its last reads (up to
//!   three), and is evicted if there was none.
//! - An item that is evicted leaves its tag, a ghost, in a free slot of its bucket. If its key is stored
//!   again soon, the item goes to the main queue at once.
//!
//! So the items of a scan pass through the small queue only. Before an item must be evicted, memory is
//! taken from expired items and from segments that hold many dead bytes.

use crate::items::item::RawItem;
use crate::items::slot::Slot;
use crate::memory::atomics::{LOCKED, SHARED, add, subtract, subtract_u32};
use crate::region::expire::Remover;
use crate::region::segment_state::{Queue, SegmentCounts, state};
use crate::region::writer::Writer;

/// The small queue has one in this number of segments.
const SMALL_QUEUE_SHARE: usize = 10;
/// A segment with this percentage of dead bytes is compacted before a live item is evicted.
const DEAD_PERCENT: usize = 50;
/// A segment with this percentage is, if one in `DEAD_SHARE` of all bytes is dead.
const SPARSE_PERCENT: usize = 20;
const DEAD_SHARE: usize = 16;
/// The most segments that wait for a look at their readers.
const RETIRED_MAX: usize = 8;
/// After this number of attempts to free a segment, only segments without live items are compacted.
const COMPACTED_MAX: usize = 8;
/// After this number of attempts, all items of the next segment are evicted.
const ATTEMPTS_MAX: usize = 16;

/// The fate of the live items of a segment that is emptied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disposition {
    /// Move all: the segment is compacted.
    KeepAll,
    /// Move those that were read, evict the others.
    KeepUsed,
    /// Evict all.
    DropAll,
}

impl Writer<'_> {
    /// Find `count` free segments in a row and return the first; other segments are emptied for them.
    /// `spare` is how many more must remain free. It is 0 if the segment is for items that are being
    /// moved: then no other segment is emptied. `None` if there is no such room.
    pub fn allocate_segments(&mut self, count: usize, spare: usize) -> Option<u32> {
        let (mut attempt, mut keep) = (0, spare);
        loop {
            let mut counts = self.count_segments();
            // To see that no reader is left takes system calls: one look is for several segments.
            let may_wait = counts.retired < RETIRED_MAX && self.has_room(&counts, count, keep);
            if !(may_wait && self.find_run(count, |state| state == state::FREE).is_some()) {
                self.free_retired();
                counts = self.count_segments();
            }
            if count + spare >= self.segments_allowed().max(1) {
                return None;
            }
            let room = self.has_room(&counts, count, keep);
            if let (true, Some(first)) = (room, self.find_free_run(count)) {
                return Some(first);
            }
            if counts.retired > 0 && (room || spare == 0 || !self.may_empty_another(&counts)) {
                self.wait_for_readers();
                // A writer that had to wait frees more than the next segment.
                keep = if spare == 0 { 0 } else { self.local.reclaim_batch.size() };
            } else if spare == 0 {
                return None;
            } else if room {
                if !self.evicts() || !self.clear_contiguous(count) {
                    return None;
                }
            } else {
                let emptied = self.reclaim(&counts, attempt);
                attempt += 1;
                let stuck = attempt > ATTEMPTS_MAX && !self.local.pins.is_empty();
                if !emptied && (stuck || !self.evicts()) {
                    return None;
                }
            }
        }
    }

    /// Set a lower limit and free the segments beyond it; without eviction, only those that have no items.
    pub fn lower_limit(&mut self, limit: usize) {
        self.region.set_limit(limit);
        for attempt in 0.. {
            self.free_retired();
            let (counts, allowed) = (self.count_segments(), self.segments_allowed());
            if counts.used <= allowed {
                break;
            }
            if counts.used - counts.retired <= allowed {
                self.wait_for_readers();
            } else if !self.reclaim(&counts, attempt)
                && (!self.evicts() || !self.local.pins.is_empty())
            {
                break;
            }
        }
        self.return_pages();
    }

    fn evicts(&self) -> bool {
        self.region.evicts.load(SHARED)
    }

    /// Whether to empty another segment before the writer waits for readers. There must be room for
    /// the items that move out of it.
    fn may_empty_another(&self, counts: &SegmentCounts) -> bool {
        counts.retired < self.local.reclaim_batch.size() && self.has_room(counts, 1, 0)
    }

    fn wait_for_readers(&mut self) {
        let retired = |segment: &u32| self.state(*segment) == state::RETIRED;
        let Some(first) = self.segments().find(retired) else { return };
        let epoch = self.region.segment_meta(first).reusable_at_epoch.load(LOCKED);
        if !self.grace_periods.wait_briefly(epoch) {
            self.local.reclaim_batch.note_wait();
        }
    }

    /// Empty segments before they are needed, so that their readers have left by then.
    pub fn reclaim_ahead(&mut self) {
        let counts = self.count_segments();
        if counts.retired > 0
            || self.has_room(&counts, 1, self.local.reclaim_batch.low_water_mark())
        {
            return;
        }
        let allowed = self.segments_allowed();
        self.local.reclaim_batch.adjust(allowed);
        self.reclaim(&counts, 0);
        for attempt in 1..self.local.reclaim_batch.size() {
            let counts = self.count_segments();
            if !self.may_empty_another(&counts) {
                return;
            }
            self.reclaim(&counts, attempt);
        }
    }

    /// Empty one segment: the one with the most dead bytes, or the oldest of a queue. False if there is none.
    fn reclaim(&mut self, counts: &SegmentCounts, attempt: usize) -> bool {
        self.sweep_expired();
        let full = |segment: &u32| {
            matches!(self.state(*segment), state::SMALL | state::MAIN)
                && !self.is_open(*segment)
                && !self.is_pinned(*segment)
        };
        let dead = |segment: &u32| {
            let meta = self.region.segment_meta(*segment);
            (meta.used_bytes.load(LOCKED) as usize)
                .saturating_sub(meta.live_bytes.load(LOCKED) as usize)
        };
        let oldest = |state: u32| {
            let of_queue = self.segments().filter(full).filter(|s| self.state(*s) == state);
            of_queue.min_by_key(|segment| self.region.segment_meta(*segment).sequence.load(LOCKED))
        };
        let single =
            |segment: &u32| self.region.segment_meta(*segment).run_length.load(LOCKED) == 1;
        let length = self.region.layout.segment;
        if let Some(worst) = self.segments().filter(full).filter(single).max_by_key(dead) {
            let percent = dead(&worst) * 100 / length;
            let enough = counts.dead_bytes * DEAD_SHARE >= counts.used * length;
            let compacts = percent >= DEAD_PERCENT || (enough && percent >= SPARSE_PERCENT);
            let live = self.region.segment_meta(worst).live_bytes.load(LOCKED);
            if compacts && (attempt < COMPACTED_MAX || live == 0) {
                self.empty_segment(worst, Disposition::KeepAll);
                return true;
            }
        }
        if !self.evicts() {
            return false;
        }
        let (small, main) = (oldest(state::SMALL), oldest(state::MAIN));
        let victim = if counts.small * SMALL_QUEUE_SHARE > counts.used {
            small.or(main)
        } else {
            main.or(small)
        };
        match victim {
            Some(victim) if attempt < ATTEMPTS_MAX => {
                self.empty_segment(victim, Disposition::KeepUsed)
            }
            Some(victim) => self.empty_segment(victim, Disposition::DropAll),
            // Only open segments are left.
            None if attempt > 0 => {
                [Queue::Small, Queue::Main].into_iter().for_each(|queue| self.close_segment(queue));
            }
            None => {}
        }
        victim.is_some()
    }

    /// Empty `count` segments in a row for a large item: those with the fewest live bytes. False if there are none.
    fn clear_contiguous(&mut self, count: usize) -> bool {
        const NEVER: usize = 1 << 40;
        let live = |segment: u32| match self.state(segment) {
            state::SMALL | state::MAIN | state::CONTINUATION
                if self.is_pinned(self.first_of_run(segment)) =>
            {
                NEVER
            }
            state::UNBACKED | state::FREE | state::RETIRED => 0,
            // Part of a large item, or open: other segments are better.
            state::CONTINUATION => self.region.layout.segment,
            _ if self.is_open(segment) => 2 * self.region.layout.segment,
            _ => self.region.segment_meta(segment).live_bytes.load(LOCKED) as usize,
        };
        let last = (self.region.segments.load(SHARED) - count) as u32;
        let cost = |first: &u32| (*first..first + count as u32).map(live).sum::<usize>();
        let Some(first) = (0..=last).min_by_key(cost).filter(|first| cost(first) < NEVER) else {
            return false;
        };
        for segment in first..first + count as u32 {
            let segment = self.first_of_run(segment);
            for queue in [Queue::Small, Queue::Main] {
                if self.region.head().open_segments[queue as usize].load(LOCKED) == segment {
                    self.close_segment(queue);
                }
            }
            if matches!(self.state(segment), state::SMALL | state::MAIN) {
                self.empty_segment(segment, Disposition::DropAll);
            }
        }
        true
    }

    /// Remove all items of a segment from the table, then retire the segment.
    fn empty_segment(&mut self, segment: u32, disposition: Disposition) {
        let meta = self.region.segment_meta(segment);
        let run = meta.run_length.load(LOCKED);
        let used = meta.used_bytes.load(LOCKED) as usize;
        let begin = segment as usize * self.region.layout.segment;
        let mut offset = begin;
        while offset < begin + used && meta.live_bytes.load(LOCKED) > 0 {
            let raw = self.raw_item_at(offset);
            // SAFETY: items follow each other in the used part, and the lock is held.
            let hash = crate::table::hash::of(unsafe { raw.key() });
            if let Some((number, slot)) = self.slot_at_offset(hash, offset) {
                if run > 1 {
                    return self.keep_or_evict_large(segment, number, slot, disposition);
                }
                self.keep_or_evict(segment, number, slot, raw, disposition);
            }
            offset += raw.bytes();
        }
        (segment..segment + run).for_each(|segment| self.retire(segment));
    }

    pub fn raw_item_at(&self, offset: usize) -> RawItem {
        // SAFETY: the offset is inside the segments, and a spare page follows them.
        unsafe { RawItem::at(self.region.data_ptr(offset)) }
    }

    fn keep_or_evict(
        &mut self,
        segment: u32,
        number: usize,
        slot: Slot,
        raw: RawItem,
        disposition: Disposition,
    ) {
        let expired = raw.expired(self.now_s);
        let uses = slot.uses();
        let queue = match (disposition, self.state(segment)) {
            (Disposition::KeepAll, state::SMALL) => Queue::Small,
            _ => Queue::Main,
        };
        let kept = match disposition {
            Disposition::KeepAll => true,
            Disposition::KeepUsed => uses > 0,
            Disposition::DropAll => false,
        };
        let left = if disposition == Disposition::KeepAll { uses } else { uses.saturating_sub(1) };
        if kept && !expired && self.move_item(number, slot, raw, queue, left) {
            return;
        }
        self.evict(number, slot, raw);
    }

    /// A large item is alone in its segments. It is not copied: its segment becomes the newest.
    fn keep_or_evict_large(
        &mut self,
        segment: u32,
        number: usize,
        slot: Slot,
        disposition: Disposition,
    ) {
        let raw = self.region.raw_item(slot);
        if disposition == Disposition::KeepUsed && slot.uses() > 0 && !raw.expired(self.now_s) {
            let (meta, head) = (self.region.segment_meta(segment), self.region.head());
            meta.state.store(state::MAIN, LOCKED);
            meta.sequence.store(head.next_sequence.load(LOCKED), LOCKED);
            add(&head.next_sequence, 1);
            self.region.slot(number).store(slot.with_uses(slot.uses() - 1).0, SHARED);
            return;
        }
        self.evict(number, slot, raw);
    }

    /// Evict an item, or remove one that has expired.
    pub fn evict(&mut self, number: usize, slot: Slot, raw: RawItem) {
        if raw.expired(self.now_s) {
            return self.drop_expired(number, slot, Remover::Store);
        }
        self.count(raw, |counters| {
            counters.evictions += 1;
            counters.evicted_unfetched += u64::from(!slot.fetched());
            counters.evicted_with_expiry += u64::from(raw.expires_s() != 0);
        });
        if let Some(observer) = self.region.observer.get() {
            // SAFETY: a slot leads to the item, and the lock is held.
            observer(unsafe { raw.key() }, &self.item(number), self.now_s);
        }
        self.remove_slot(number, slot, slot.to_ghost());
    }

    /// Remove an item from the table and from the counts. `left` is the new content of its slot.
    pub fn remove_slot(&mut self, number: usize, slot: Slot, left: Slot) {
        let (region, raw) = (self.region, self.region.raw_item(slot));
        let bytes = raw.bytes();
        self.count_exit(raw);
        region.slot(number).store(left.0, SHARED);
        subtract(&region.head().items, 1);
        subtract(&region.head().bytes, bytes as u64);
        self.mark_dead(slot.offset(), bytes);
    }

    /// Count an item's bytes as dead. Segments without live items are retired at once, so that their memory is used
    /// again before other memory is, unless items are still written there.
    pub fn mark_dead(&self, offset: usize, bytes: usize) {
        let segment = self.region.segment_of(offset);
        let meta = self.region.segment_meta(segment);
        subtract_u32(&meta.live_bytes, bytes);
        let run = meta.run_length.load(LOCKED);
        let is_done = || !self.is_open(segment) && !self.is_pinned(segment);
        if run > 1 || (meta.live_bytes.load(LOCKED) == 0 && is_done()) {
            (segment..segment + run).for_each(|segment| self.retire(segment));
        }
    }
}
