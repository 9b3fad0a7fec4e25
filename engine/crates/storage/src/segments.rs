//! Segments: which are free, which are open, and where the next item goes.

use std::sync::atomic::AtomicU32;

use crate::layout::{BUCKET_BYTES, NONE};
use crate::memory::PAGE_BYTES;
use crate::region::{OWN, SEEN, add};
use crate::writer::Writer;

/// What a segment is, as its note says. Those of a queue may be open or full.
pub mod state {
    /// Never used, or given back to the system.
    pub const CLEAN: u32 = 0;
    /// Free, with pages of its own.
    pub const FREE: u32 = 1;
    /// Out of sight; readers may still look.
    pub const PENDING: u32 = 2;
    /// The queue of new items.
    pub const NEW: u32 = 3;
    /// The queue of those that proved useful.
    pub const MAIN: u32 = 4;
    /// Not the first segment of a large item.
    pub const REST: u32 = 5;
}

/// The queue that an item is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    New,
    Main,
}

impl Queue {
    pub fn state(self) -> u32 {
        match self {
            Queue::New => state::NEW,
            Queue::Main => state::MAIN,
        }
    }
}

/// How the segments are used, from one look at their notes.
#[derive(Clone, Copy, Default)]
pub struct Census {
    pub used: usize,
    pub free: usize,
    pub pending: usize,
    pub new: usize,
    pub main: usize,
    /// Bytes of full segments that no living item has any more.
    pub dead: usize,
}

impl Writer<'_> {
    fn open_segment(&self, queue: Queue) -> &AtomicU32 {
        &self.region.head().open[queue as usize]
    }

    pub fn is_open(&self, segment: u32) -> bool {
        self.region.head().open.iter().any(|open| open.load(OWN) == segment)
    }

    pub fn state(&self, segment: u32) -> u32 {
        self.region.note(segment).state.load(OWN)
    }

    pub fn segments(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        0..self.region.layout.segments as u32
    }

    /// What the table takes, as far as it is used.
    pub fn table_bytes(&self) -> usize {
        let head = self.region.head();
        (head.buckets.load(OWN) + head.overflow_used.load(OWN)) as usize * BUCKET_BYTES
    }

    /// How many segments there may be beside a table of its present size.
    pub fn allowed(&self) -> usize {
        // Tables end within a page each.
        let table = self.table_bytes() + 2 * PAGE_BYTES;
        let layout = &self.region.layout;
        layout.limit.saturating_sub(layout.table_at + table) / layout.segment
    }

    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for segment in self.segments() {
            let note = self.region.note(segment);
            match note.state.load(OWN) {
                state::CLEAN => continue,
                state::FREE => {
                    census.free += 1;
                    continue;
                }
                state::PENDING => census.pending += 1,
                state::NEW => census.new += 1,
                state::MAIN => census.main += 1,
                _ => {}
            }
            census.used += 1;
            let full = matches!(self.state(segment), state::NEW | state::MAIN)
                && !self.is_open(segment)
                && note.run.load(OWN) == 1;
            if full {
                let live = note.live.load(OWN);
                census.dead += note.used.load(OWN).saturating_sub(live) as usize;
            }
        }
        census
    }

    /// Make those segments free that no reader can look into any more.
    pub fn settle(&self) {
        for segment in self.segments() {
            let note = self.region.note(segment);
            if note.state.load(OWN) == state::PENDING && self.grace.passed(note.grace.load(OWN)) {
                note.state.store(state::FREE, OWN);
            }
        }
    }

    /// A segment's items are out of the table: it may be used again, as soon as nobody looks.
    pub fn retire(&self, segment: u32) {
        let note = self.region.note(segment);
        note.generation.fetch_add(1, SEEN);
        note.live.store(0, OWN);
        note.used.store(0, OWN);
        if self.region.shared {
            note.state.store(state::FREE, OWN);
        } else {
            note.grace.store(self.grace.after(), OWN);
            note.state.store(state::PENDING, OWN);
        }
    }

    /// Whether so many segments more fit, with so many to spare; not while some are pending.
    pub fn room_for(&self, census: &Census, count: usize, spare: usize) -> bool {
        census.used + count + spare <= self.allowed()
    }

    /// A free segment and those behind it, made part of a queue.
    pub fn begin(&self, first: u32, count: usize, queue: Queue) {
        let region = self.region;
        let words = (count * region.layout.segment / 4) as u64;
        let cas = region.store().next_cas.fetch_add(words, OWN);
        for (n, segment) in (first..first + count as u32).enumerate() {
            let note = region.note(segment);
            note.generation.fetch_add(1, SEEN);
            note.used.store(0, OWN);
            note.live.store(0, OWN);
            note.expires_s.store(NONE, OWN);
            note.run.store(if n == 0 { count as u32 } else { 0 }, OWN);
            note.cas.store(cas, OWN);
            note.order.store(region.head().order.load(OWN), OWN);
            note.state.store(if n == 0 { queue.state() } else { state::REST }, OWN);
        }
        add(&region.head().order, 1);
        self.trim();
    }

    /// Give pages back where the table has grown into what segments had.
    fn trim(&self) {
        let census = self.census();
        let over = (census.used + census.free).saturating_sub(self.allowed());
        let free = |segment: &u32| self.state(*segment) == state::FREE;
        let layout = &self.region.layout;
        for segment in self.segments().rev().filter(free).take(over) {
            let offset = layout.data_at + segment as usize * layout.segment;
            self.region.discard(offset, layout.segment);
            self.region.note(segment).state.store(state::CLEAN, OWN);
        }
    }

    /// The first of so many free segments side by side.
    pub fn find_free(&self, count: usize) -> Option<u32> {
        let free = |segment: u32| matches!(self.state(segment), state::CLEAN | state::FREE);
        if count == 1 {
            let used = self.segments().find(|segment| self.state(*segment) == state::FREE);
            return used.or_else(|| self.segments().find(|segment| free(*segment)));
        }
        let mut length = 0;
        for segment in self.segments() {
            length = if free(segment) { length + 1 } else { 0 };
            if length == count {
                return Some(segment + 1 - count as u32);
            }
        }
        None
    }

    /// Where the next item of a queue would begin, if a segment is open.
    pub fn head_of(&self, queue: Queue) -> Option<usize> {
        let segment = self.open_segment(queue).load(OWN);
        if segment == NONE {
            return None;
        }
        let used = self.region.note(segment).used.load(OWN) as usize;
        let length = self.region.layout.segment;
        (used < length).then_some(segment as usize * length + used)
    }

    /// The queue's open segment is full.
    pub fn close(&self, queue: Queue) {
        self.open_segment(queue).store(NONE, OWN);
    }

    pub fn open(&self, segment: u32, queue: Queue) {
        self.begin(segment, 1, queue);
        self.open_segment(queue).store(segment, OWN);
    }

    /// A unique number that no item had before: that which the next new item's place implies.
    pub fn fresh_cas(&self) -> u64 {
        match self.head_of(Queue::New) {
            Some(offset) => self.region.implied_cas(offset),
            None => self.region.store().next_cas.fetch_add(1, OWN),
        }
    }
}
