//! Allocation of segments: which are free, which are open, and where the next item is written.

use std::sync::atomic::AtomicU32;

use crate::memory::atomics::{LOCKED, SHARED, add};
use crate::memory::layout::{BUCKET_BYTES, NONE, SegmentMeta};
use crate::memory::mapping::PAGE_BYTES;
use crate::region::segment_state::{Queue, SegmentCounts, state};
use crate::region::writer::Writer;

impl Writer<'_> {
    fn open_segment_of(&self, queue: Queue) -> &AtomicU32 {
        &self.region.head().open_segments[queue as usize]
    }

    pub fn is_open(&self, segment: u32) -> bool {
        self.region.head().open_segments.iter().any(|open| open.load(LOCKED) == segment)
    }

    pub fn state(&self, segment: u32) -> u32 {
        self.region.segment_meta(segment).state.load(LOCKED)
    }

    /// The first segment of the run that this one belongs to.
    pub fn first_of_run(&self, segment: u32) -> u32 {
        let mut first = segment;
        while self.state(first) == state::CONTINUATION {
            first -= 1;
        }
        first
    }

    pub fn segments(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        0..self.region.segments.load(SHARED) as u32
    }

    /// The memory of the used part of the table.
    pub fn table_bytes(&self) -> usize {
        let head = self.region.head();
        (head.buckets.load(LOCKED) + head.overflow_used.load(LOCKED)) as usize * BUCKET_BYTES
    }

    /// How many segments the memory limit allows beside the table's present size.
    pub fn segments_allowed(&self) -> usize {
        self.segments_within(self.region.limit.load(SHARED))
    }

    /// The same for any limit.
    pub fn segments_within(&self, limit: usize) -> usize {
        let layout = &self.region.layout;
        let segments = self.region.segments.load(SHARED);
        let metadata = (segments * size_of::<SegmentMeta>()).next_multiple_of(PAGE_BYTES);
        // The buckets and the overflow buckets each end inside a page.
        let table = self.table_bytes() + 2 * PAGE_BYTES;
        limit.saturating_sub(layout.segment_meta_at + metadata + table) / layout.segment
    }

    pub fn count_segments(&self) -> SegmentCounts {
        let mut counts = SegmentCounts::default();
        for segment in self.segments() {
            let meta = self.region.segment_meta(segment);
            match meta.state.load(LOCKED) {
                state::UNBACKED => continue,
                state::FREE => {
                    counts.free += 1;
                    continue;
                }
                state::RETIRED => counts.retired += 1,
                state::SMALL => counts.small += 1,
                state::MAIN => counts.main += 1,
                _ => {}
            }
            counts.used += 1;
            let full = matches!(self.state(segment), state::SMALL | state::MAIN)
                && !self.is_open(segment)
                && meta.run_length.load(LOCKED) == 1;
            if full {
                let live = meta.live_bytes.load(LOCKED);
                counts.dead_bytes += meta.used_bytes.load(LOCKED).saturating_sub(live) as usize;
            }
        }
        counts
    }

    /// Free the retired segments that no reader can see any more.
    pub fn free_retired(&self) {
        for segment in self.segments() {
            let meta = self.region.segment_meta(segment);
            if meta.state.load(LOCKED) == state::RETIRED
                && self.grace_periods.has_passed(meta.reusable_at_epoch.load(LOCKED))
            {
                meta.state.store(state::FREE, LOCKED);
            }
        }
    }

    /// A segment's items are no longer in the table: free it as soon as no reader can see them.
    pub fn retire(&self, segment: u32) {
        let meta = self.region.segment_meta(segment);
        meta.generation.fetch_add(1, SHARED);
        meta.live_bytes.store(0, LOCKED);
        meta.used_bytes.store(0, LOCKED);
        if self.region.shared {
            meta.state.store(state::FREE, LOCKED);
        } else {
            meta.reusable_at_epoch.store(self.grace_periods.reuse_epoch(), LOCKED);
            meta.state.store(state::RETIRED, LOCKED);
        }
    }

    /// Whether `count` more segments fit and `spare` remain. Retired segments count as used.
    pub fn has_room(&self, counts: &SegmentCounts, count: usize, spare: usize) -> bool {
        counts.used + count + spare <= self.segments_allowed()
    }

    /// Make a free segment, and the `count - 1` segments behind it, part of a queue.
    pub fn begin_segments(&self, first: u32, count: usize, queue: Queue) {
        let region = self.region;
        let words = (count * region.layout.segment / 4) as u64;
        let cas = region.store().next_cas.fetch_add(words, LOCKED);
        for (n, segment) in (first..first + count as u32).enumerate() {
            let meta = region.segment_meta(segment);
            meta.generation.fetch_add(1, SHARED);
            meta.used_bytes.store(0, LOCKED);
            meta.live_bytes.store(0, LOCKED);
            meta.earliest_expiry_s.store(NONE, LOCKED);
            meta.run_length.store(if n == 0 { count as u32 } else { 0 }, LOCKED);
            meta.first_cas.store(cas, LOCKED);
            meta.sequence.store(region.head().next_sequence.load(LOCKED), LOCKED);
            meta.state.store(if n == 0 { queue.state() } else { state::CONTINUATION }, LOCKED);
        }
        add(&region.head().next_sequence, 1);
        self.return_pages();
    }

    /// Return the pages of free segments to the system if the table has grown by as much, or the limit was
    /// lowered.
    pub fn return_pages(&self) {
        let counts = self.count_segments();
        let over = (counts.used + counts.free).saturating_sub(self.segments_allowed());
        let free = |segment: &u32| self.state(*segment) == state::FREE;
        let layout = &self.region.layout;
        for segment in self.segments().rev().filter(free).take(over) {
            let offset = layout.data_at + segment as usize * layout.segment;
            self.region.release_pages(offset, layout.segment);
            self.region.segment_meta(segment).state.store(state::UNBACKED, LOCKED);
        }
    }

    /// The first of `count` free segments in a row, of those that have memory if possible.
    pub fn find_free_run(&self, count: usize) -> Option<u32> {
        let free = |state: u32| matches!(state, state::UNBACKED | state::FREE);
        self.find_run(count, |state| state == state::FREE).or_else(|| self.find_run(count, free))
    }

    /// The first of `count` segments in a row whose states are such.
    pub fn find_run(&self, count: usize, is_such: impl Fn(u32) -> bool) -> Option<u32> {
        let mut length = 0;
        for segment in self.segments() {
            length = if is_such(self.state(segment)) { length + 1 } else { 0 };
            if length == count {
                return Some(segment + 1 - count as u32);
            }
        }
        None
    }

    /// The offset of a queue's next item, if the queue has an open segment with room.
    pub fn append_offset(&self, queue: Queue) -> Option<usize> {
        let segment = self.open_segment_of(queue).load(LOCKED);
        if segment == NONE {
            return None;
        }
        let used = self.region.segment_meta(segment).used_bytes.load(LOCKED) as usize;
        let length = self.region.layout.segment;
        (used < length).then_some(segment as usize * length + used)
    }

    /// Write no more items to the queue's open segment.
    pub fn close_segment(&self, queue: Queue) {
        self.open_segment_of(queue).store(NONE, LOCKED);
    }

    /// The same for a segment that is full. If all its items are dead already, it is retired.
    pub fn end_segment(&self, queue: Queue) {
        let segment = self.open_segment_of(queue).load(LOCKED);
        self.close_segment(queue);
        let is_dead = |segment| self.region.segment_meta(segment).live_bytes.load(LOCKED) == 0;
        if segment != NONE && is_dead(segment) && !self.is_pinned(segment) {
            self.retire(segment);
        }
    }

    pub fn open_segment(&self, segment: u32, queue: Queue) {
        self.begin_segments(segment, 1, queue);
        self.open_segment_of(queue).store(segment, LOCKED);
    }

    /// A cas number that no item had before: the one that the next new item's offset implies. 0 if items have none.
    pub fn fresh_cas(&self) -> u64 {
        if !self.region.has_cas.load(LOCKED) {
            return 0;
        }
        match self.append_offset(Queue::Small) {
            Some(offset) => self.region.implied_cas(offset),
            None => self.region.store().next_cas.fetch_add(1, LOCKED),
        }
    }
}
