//! Making room: what has expired, then what is dead among the living, then what is of least use.
//!
//! New items form a queue of a tenth of the memory, those that were read there a queue of the rest;
//! each loses its oldest segment in turn. An item of the main queue that was read goes round again,
//! once for each of its last uses (up to three). One that leaves the new queue unread leaves its
//! tag in a free slot of its bucket: if it comes back soon, it is of the main queue at once. This is
//! S3-FIFO (J. Yang et al., SOSP 2023) on segments; a scan passes through the new queue alone.

use crate::item::Placed;
use crate::layout::NONE;
use crate::region::{OWN, SEEN, add, reduce, subtract};
use crate::segments::{Census, Queue, state};
use crate::slot::Slot;
use crate::writer::Writer;

/// The share of the memory that new items have, one in so many.
const NEW_SHARE: usize = 10;
/// A segment of which so much is dead is emptied before a living item must leave, in percent …
const DEAD_PERCENT: usize = 50;
/// … and one of which only so much is, once there are enough of them: one in so many bytes of all.
const SPARSE_PERCENT: usize = 20;
const DEAD_SHARE: usize = 16;
/// Segments that are swept for expired items before one is emptied.
const SWEEPS: usize = 4;
/// After so many segments without a free one, no more are emptied for their dead bytes …
const GATHERED_MOST: usize = 8;
/// … and after so many the next is dropped whatever its uses.
const PATIENCE: usize = 16;

/// What is to become of a segment's living items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Judged,
    Dropped,
}

impl Writer<'_> {
    /// The first of `count` free segments, for which others are emptied. With nothing to `spare`,
    /// it is for items that are moved: then none is emptied for it. `None` when it cannot be.
    pub fn obtain(&mut self, count: usize, spare: usize) -> Option<u32> {
        let (mut attempt, mut keep) = (0, spare);
        loop {
            self.settle();
            let census = self.census();
            if count + spare >= self.allowed().max(1) {
                return None;
            }
            let room = self.room_for(&census, count, keep);
            if let (true, Some(first)) = (room, self.find_free(count)) {
                return Some(first);
            }
            if census.pending > 0 && (room || spare == 0 || !self.empties_more(&census)) {
                self.wait_for_readers();
                // Who has to wait does so for more than the next segment.
                keep = if spare == 0 { 0 } else { self.local.stock.segments() };
            } else if spare == 0 {
                return None;
            } else if room {
                self.clear_window(count);
            } else {
                self.reclaim(&census, attempt);
                attempt += 1;
            }
        }
    }

    /// Whether another segment is to be emptied before readers are waited for; there must be room for
    /// what moves out of it.
    fn empties_more(&self, census: &Census) -> bool {
        census.pending < self.local.stock.segments() && self.room_for(census, 1, 0)
    }

    fn wait_for_readers(&mut self) {
        let pending = |segment: &u32| self.state(*segment) == state::PENDING;
        let Some(first) = self.segments().find(pending) else { return };
        let epoch = self.region.note(first).grace.load(OWN);
        if !self.grace.wait(epoch) {
            self.local.stock.waited();
        }
    }

    /// Empty segments before the next is needed, so that no writer waits for readers to leave.
    pub fn look_ahead(&mut self) {
        let census = self.census();
        if census.pending > 0 || self.room_for(&census, 1, self.local.stock.least()) {
            return;
        }
        let allowed = self.allowed();
        self.local.stock.learn(allowed);
        self.reclaim(&census, 0);
        for attempt in 1..self.local.stock.segments() {
            let census = self.census();
            if !self.empties_more(&census) {
                return;
            }
            self.reclaim(&census, attempt);
        }
    }

    fn reclaim(&mut self, census: &Census, attempt: usize) {
        self.sweep_due();
        let full = |segment: &u32| {
            matches!(self.state(*segment), state::NEW | state::MAIN) && !self.is_open(*segment)
        };
        let dead = |segment: &u32| {
            let note = self.region.note(*segment);
            (note.used.load(OWN) as usize).saturating_sub(note.live.load(OWN) as usize)
        };
        let oldest = |state: u32| {
            let of_queue = self.segments().filter(full).filter(|s| self.state(*s) == state);
            of_queue.min_by_key(|segment| self.region.note(*segment).order.load(OWN))
        };
        let single = |segment: &u32| self.region.note(*segment).run.load(OWN) == 1;
        let length = self.region.layout.segment;
        if let Some(worst) = self.segments().filter(full).filter(single).max_by_key(dead) {
            let percent = dead(&worst) * 100 / length;
            let enough = census.dead * DEAD_SHARE >= census.used * length;
            let gathers = percent >= DEAD_PERCENT || (enough && percent >= SPARSE_PERCENT);
            if gathers && attempt < GATHERED_MOST {
                return self.empty(worst, Fate::Kept);
            }
        }
        let (new, main) = (oldest(state::NEW), oldest(state::MAIN));
        let victim = if census.new * NEW_SHARE > census.used { new.or(main) } else { main.or(new) };
        match victim {
            Some(victim) if attempt < PATIENCE => self.empty(victim, Fate::Judged),
            Some(victim) => self.empty(victim, Fate::Dropped),
            // All there is is open.
            None if attempt > 0 => {
                [Queue::New, Queue::Main].into_iter().for_each(|queue| self.close(queue));
            }
            None => {}
        }
    }

    /// Empty the side-by-side segments that cost least, so that a large item has room.
    fn clear_window(&mut self, count: usize) {
        let live = |segment: u32| match self.state(segment) {
            state::CLEAN | state::FREE | state::PENDING => 0,
            // Of a large item, or open: rather others.
            state::REST => self.region.layout.segment,
            _ if self.is_open(segment) => 2 * self.region.layout.segment,
            _ => self.region.note(segment).live.load(OWN) as usize,
        };
        let last = (self.region.layout.segments - count) as u32;
        let cost = |first: &u32| (*first..first + count as u32).map(live).sum::<usize>();
        let Some(first) = (0..=last).min_by_key(cost) else { return };
        for segment in first..first + count as u32 {
            let mut segment = segment;
            while self.state(segment) == state::REST {
                segment -= 1;
            }
            for queue in [Queue::New, Queue::Main] {
                if self.region.head().open[queue as usize].load(OWN) == segment {
                    self.close(queue);
                }
            }
            if matches!(self.state(segment), state::NEW | state::MAIN) {
                self.empty(segment, Fate::Dropped);
            }
        }
    }

    /// Take all items of a segment out of sight and the segment out of use.
    fn empty(&mut self, segment: u32, fate: Fate) {
        let note = self.region.note(segment);
        let run = note.run.load(OWN);
        let used = note.used.load(OWN) as usize;
        let begin = segment as usize * self.region.layout.segment;
        let mut offset = begin;
        while offset < begin + used && note.live.load(OWN) > 0 {
            let placed = self.placed_at(offset);
            // SAFETY: items lie one behind the other in the used part, and the lock is held.
            let hash = crate::hash::of(unsafe { placed.key() });
            if let Some((number, slot)) = self.locate(hash, offset) {
                if run > 1 {
                    return self.judge_large(segment, number, slot, fate);
                }
                self.judge(segment, number, slot, placed, fate);
            }
            offset += placed.bytes();
        }
        (segment..segment + run).for_each(|segment| self.retire(segment));
    }

    fn placed_at(&self, offset: usize) -> Placed {
        // SAFETY: inside the segments, and a page to spare follows them.
        unsafe { Placed::at(self.region.byte(offset)) }
    }

    fn judge(&mut self, segment: u32, number: usize, slot: Slot, placed: Placed, fate: Fate) {
        let gone = placed.expired(self.now_s);
        let uses = slot.uses();
        let queue = match (fate, self.state(segment)) {
            (Fate::Kept, state::NEW) => Queue::New,
            _ => Queue::Main,
        };
        let kept = match fate {
            Fate::Kept => true,
            Fate::Judged => uses > 0,
            Fate::Dropped => false,
        };
        let left = if fate == Fate::Kept { uses } else { uses.saturating_sub(1) };
        if kept && !gone && self.move_item(number, slot, placed, queue, left) {
            return;
        }
        self.evict(number, slot, placed);
    }

    /// A large item has its segments for itself: it is not copied, only counted as younger.
    fn judge_large(&mut self, segment: u32, number: usize, slot: Slot, fate: Fate) {
        let placed = self.region.placed(slot);
        if fate == Fate::Judged && slot.uses() > 0 && !placed.expired(self.now_s) {
            let (note, head) = (self.region.note(segment), self.region.head());
            note.state.store(state::MAIN, OWN);
            note.order.store(head.order.load(OWN), OWN);
            add(&head.order, 1);
            self.region.slot(number).store(slot.with_uses(slot.uses() - 1).0, SEEN);
            return;
        }
        self.evict(number, slot, placed);
    }

    /// Remove an item for want of room, or one that has expired.
    pub fn evict(&mut self, number: usize, slot: Slot, placed: Placed) {
        let counters = &mut self.local.counters;
        let unfetched = u64::from(!slot.fetched());
        if placed.expired(self.now_s) {
            counters.expired_unfetched += unfetched;
            return self.forget(number, slot, Slot::EMPTY);
        }
        counters.evictions += 1;
        counters.evicted_unfetched += unfetched;
        self.forget(number, slot, slot.ghost());
    }

    /// Take an item out of the table and of the counts; what is left of its slot.
    pub fn forget(&mut self, number: usize, slot: Slot, left: Slot) {
        let (region, bytes) = (self.region, self.region.placed(slot).bytes());
        region.slot(number).store(left.0, SEEN);
        subtract(&region.head().items, 1);
        subtract(&region.head().bytes, bytes as u64);
        self.unlive(slot.offset(), bytes);
    }

    /// An item's bytes are dead. Those of a large one are free at once.
    pub fn unlive(&self, offset: usize, bytes: usize) {
        let segment = self.region.segment_of(offset);
        let note = self.region.note(segment);
        reduce(&note.live, bytes);
        let run = note.run.load(OWN);
        if run > 1 {
            (segment..segment + run).for_each(|segment| self.retire(segment));
        }
    }

    /// Sweep those segments in which items have expired, the most overdue first.
    fn sweep_due(&mut self) {
        for _ in 0..SWEEPS {
            let expires = |segment: &u32| self.region.note(*segment).expires_s.load(OWN);
            let kept = |segment: &u32| matches!(self.state(*segment), state::NEW | state::MAIN);
            let due = self.segments().filter(kept).min_by_key(expires);
            match due.filter(|segment| expires(segment) <= self.now_s) {
                Some(segment) => self.sweep(segment),
                None => return,
            }
        }
    }

    fn sweep(&mut self, segment: u32) {
        let note = self.region.note(segment);
        let begin = segment as usize * self.region.layout.segment;
        let (mut offset, end) = (begin, begin + note.used.load(OWN) as usize);
        let mut next_s = NONE;
        while offset < end && note.live.load(OWN) > 0 {
            let placed = self.placed_at(offset);
            let expires_s = placed.expires_s();
            if expires_s != 0 {
                // SAFETY: as in `empty`.
                let hash = crate::hash::of(unsafe { placed.key() });
                match self.locate(hash, offset) {
                    Some((number, slot)) if placed.expired(self.now_s) => {
                        self.evict(number, slot, placed);
                    }
                    Some(_) => next_s = next_s.min(expires_s),
                    None => {}
                }
            }
            offset += placed.bytes();
        }
        note.expires_s.store(next_s, OWN);
    }
}
