//! A region with its lock held: what changes an item.

use std::sync::MutexGuard;

use crate::grace::Grace;
use crate::item::{Marks, Parts, Placed};
use crate::layout::NONE;
use crate::lock::Held;
use crate::region::{Local, OWN, Region, SEEN, add, subtract};
use crate::segments::{Queue, state};
use crate::slot::{Slot, USES_MOST};

/// A region that no other writer changes meanwhile.
pub struct Writer<'a> {
    pub region: &'a Region,
    pub grace: &'a Grace,
    // The fields are dropped in this order: the lock between processes first.
    pub between: Option<Held<'a>>,
    pub local: MutexGuard<'a, Local>,
    pub now_s: u32,
}

/// What is to be stored; the key is at most 250 bytes.
pub struct Fresh<'a> {
    pub hash: u64,
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub flags: u32,
    pub expires_s: u32,
    pub cas: u64,
    pub marks: Marks,
    pub accessed_s: u32,
}

impl<'a> Writer<'a> {
    /// Take the lock, mend what a dead holder left, and do what is due.
    pub fn new(region: &'a Region, grace: &'a Grace, now_s: u32) -> Writer<'a> {
        let local = region.local.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let between = region.shared.then(|| Held::take(&region.head().lock));
        let mut writer = Writer { region, grace, between, local, now_s };
        if writer.between.as_ref().is_some_and(|held| held.orphaned) {
            writer.mend();
        }
        if region.flush_due(now_s) {
            writer.drop_all();
        }
        writer.grow();
        writer
    }

    /// The living item of a key; an expired one is removed on the way.
    pub fn find(&mut self, hash: u64, key: &[u8]) -> Option<usize> {
        let region = self.region;
        // SAFETY: a live slot leads to a whole item, and only the holder of the lock writes there.
        let same = |slot: Slot| unsafe { region.placed(slot).key() } == key;
        let (number, slot) = region.search(hash, same)?;
        let placed = region.placed(slot);
        if placed.expired(self.now_s) {
            self.local.counters.get_expired += 1;
            self.evict(number, slot, placed);
            return None;
        }
        Some(number)
    }

    /// Drop what is stored before an instant. One flush waits at most: a new one takes the place
    /// of one that is not due.
    pub fn flush(&mut self, at_s: u32) {
        self.region.head().flush_at_s.store(at_s, OWN);
        if at_s <= self.now_s {
            self.drop_all();
        }
    }

    fn drop_all(&mut self) {
        let head = self.region.head();
        self.clear_table();
        [Queue::New, Queue::Main].into_iter().for_each(|queue| self.close(queue));
        let kept =
            |segment: &u32| matches!(self.state(*segment), state::NEW | state::MAIN | state::REST);
        self.segments().filter(kept).for_each(|segment| self.retire(segment));
        head.items.store(0, OWN);
        head.bytes.store(0, OWN);
        // Last, so that the flush of a writer that is killed is done by the next one.
        head.flush_at_s.store(NONE, SEEN);
    }

    /// Put an item in place of the one of the same key, if there is one; others leave until it
    /// fits. Its slot, or `None` when it never would fit.
    pub fn put(&mut self, fresh: &Fresh<'_>, old: Option<usize>) -> Option<usize> {
        let parts = Parts {
            key: fresh.key,
            value: fresh.value,
            flags: fresh.flags,
            expires_s: fresh.expires_s,
            accessed_s: fresh.accessed_s,
            cas: Some(fresh.cas),
        };
        let queue = match old {
            None if self.take_ghost(fresh.hash) => Queue::Main,
            _ => Queue::New,
        };
        let (offset, bytes) = self.write(parts, queue, 1)?;
        let slot = Slot::new(fresh.hash, offset, fresh.marks);
        let head = self.region.head();
        self.local.counters.total_items += 1;
        add(&head.bytes, bytes as u64);
        // Making room may have taken the old one.
        let old = old.map(|number| (number, self.region.load(number)));
        if let Some((number, before)) = old.filter(|(_, before)| before.is_live()) {
            let bytes = self.region.placed(before).bytes();
            let uses = (before.uses() + 1).min(USES_MOST);
            self.region.slot(number).store(slot.with_uses(uses).0, SEEN);
            subtract(&head.bytes, bytes as u64);
            self.unlive(before.offset(), bytes);
            return Some(number);
        }
        add(&head.items, 1);
        let inserted = self.insert_slot(fresh.hash, slot);
        Some(inserted.unwrap_or_else(|number| {
            let least = self.region.load(number);
            self.evict(number, least, self.region.placed(least));
            self.region.slot(number).store(slot.0, SEEN);
            number
        }))
    }

    /// Write an item to the end of a queue: where it begins and what it takes. Nothing leads to it
    /// yet. Its number is written only where its place does not imply it.
    fn write(&mut self, parts: Parts<'_>, queue: Queue, spare: usize) -> Option<(usize, usize)> {
        let length = self.region.layout.segment;
        let implied = Parts { cas: None, ..parts };
        if parts.bytes() > length / 2 {
            let count = parts.bytes().div_ceil(length);
            let first = self.obtain(count, spare)?;
            self.begin(first, count, queue);
            return Some(self.write_at(first as usize * length, &parts));
        }
        loop {
            if let Some(offset) = self.head_of(queue) {
                let says = Some(self.region.implied_cas(offset)) == parts.cas;
                let parts = if says { &implied } else { &parts };
                if offset % length + parts.bytes() <= length {
                    return Some(self.write_at(offset, parts));
                }
            }
            self.close(queue);
            let segment = self.obtain(1, spare)?;
            // Emptying others may have opened one.
            if self.head_of(queue).is_none() {
                self.open(segment, queue);
                if spare > 0 {
                    self.look_ahead();
                }
            }
        }
    }

    fn write_at(&self, offset: usize, parts: &Parts<'_>) -> (usize, usize) {
        let (region, bytes) = (self.region, parts.bytes());
        let note = region.note(region.segment_of(offset));
        // SAFETY: free segments are out of readers' sight, and behind the used part of an open one
        // nobody has ever looked; there is room.
        unsafe { parts.write(region.byte(offset)) };
        let expires_s = if parts.expires_s == 0 { NONE } else { parts.expires_s };
        note.expires_s.store(note.expires_s.load(OWN).min(expires_s), OWN);
        note.live.store(note.live.load(OWN) + bytes as u32, OWN);
        note.used.store(note.used.load(OWN) + bytes as u32, SEEN);
        (offset, bytes)
    }

    /// Copy an item to the end of a queue and lead its slot there. False when there is no room.
    pub fn move_item(
        &mut self,
        number: usize,
        slot: Slot,
        placed: Placed,
        queue: Queue,
        uses: u64,
    ) -> bool {
        let implied = self.region.implied_cas(slot.offset());
        // SAFETY: the item is whole, and its segment stays until it is emptied.
        let parts = unsafe { placed.parts(implied) };
        let Some((offset, bytes)) = self.write(parts, queue, 0) else { return false };
        self.region.slot(number).store(slot.moved(offset, uses).0, SEEN);
        let head = self.region.head();
        add(&head.bytes, bytes as u64);
        subtract(&head.bytes, placed.bytes() as u64);
        self.unlive(slot.offset(), placed.bytes());
        true
    }

    /// An item that can be read as long as the lock is held.
    pub fn item(&self, number: usize) -> crate::item::Item<'_> {
        let slot = self.region.load(number);
        let placed = self.region.placed(slot);
        // SAFETY: a live slot leads to a whole item, and only the holder of the lock writes there.
        let value = unsafe { placed.value() };
        placed.describe(slot, self.region.implied_cas(slot.offset()), value)
    }

    /// The item was read.
    pub fn used_now(&self, number: usize) {
        let slot = self.region.load(number);
        self.region.use_slot(number, slot);
        self.region.placed(slot).access(self.now_s);
    }

    /// The item was looked at, which is no read of it.
    pub fn accessed_now(&self, number: usize) {
        self.region.placed(self.region.load(number)).access(self.now_s);
    }

    pub fn set_marks(&self, number: usize, marks: Marks) {
        let slot = self.region.load(number);
        self.region.slot(number).store(slot.with_marks(marks).0, SEEN);
    }

    /// Change the expiry in place, if the item has a word for it.
    pub fn set_expiry(&self, number: usize, expires_s: u32) -> bool {
        let slot = self.region.load(number);
        let changed = self.region.placed(slot).set_expiry(expires_s);
        if changed && expires_s != 0 {
            let note = self.region.note(self.region.segment_of(slot.offset()));
            note.expires_s.store(note.expires_s.load(OWN).min(expires_s), OWN);
        }
        changed
    }

    /// Write an item anew with another value, or what else is new. Where there is no room for that
    /// it is removed, and this is `None`.
    pub fn rewrite(
        &mut self,
        number: usize,
        value: Option<&[u8]>,
        expires_s: u32,
        cas: u64,
    ) -> Option<usize> {
        let before = self.region.load(number);
        let placed = self.region.placed(before);
        // Making room may take the item's own segment: its bytes are kept aside.
        // SAFETY: a live slot leads to a whole item, and only the holder of the lock writes there.
        let (key, old) = unsafe { (placed.key().to_vec(), placed.value().to_vec()) };
        let fresh = Fresh {
            hash: crate::hash::of(&key),
            key: &key,
            value: value.unwrap_or(&old),
            flags: placed.flags(),
            expires_s,
            cas,
            marks: before.marks(),
            accessed_s: placed.accessed_s(),
        };
        let Some(written) = self.put(&fresh, Some(number)) else {
            if self.region.load(number).is_live() {
                self.remove(number);
            }
            return None;
        };
        self.local.counters.total_items -= 1;
        if before.fetched() {
            let slot = self.region.load(written);
            self.region.slot(written).store(slot.as_fetched().0, SEEN);
        }
        Some(written)
    }

    pub fn remove(&mut self, number: usize) {
        let slot = self.region.load(number);
        self.forget(number, slot, Slot::EMPTY);
    }
}
