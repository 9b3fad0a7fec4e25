//! A region whose lock is held: everything that changes items.

use std::sync::MutexGuard;

use crate::items::item::{Item, ItemParts, RawItem, Value};
use crate::items::marks::Marks;
use crate::items::slot::{Slot, USES_MAX};
use crate::memory::atomics::{LOCKED, SHARED, add, subtract};
use crate::memory::layout::NONE;
use crate::reclamation::grace_periods::GracePeriods;
use crate::region::robust_mutex::RobustGuard;
use crate::region::segment_state::{Queue, state};
use crate::region::{Local, Region};
use crate::table::hash;

/// A region that only this writer changes while it lives.
pub struct Writer<'a> {
    pub region: &'a Region,
    pub grace_periods: &'a GracePeriods,
    // Fields are dropped in this order: the lock between processes is released first.
    pub process_lock: Option<RobustGuard<'a>>,
    pub local: MutexGuard<'a, Local>,
    pub now_s: u32,
}

/// At most one in this number of segments is pinned.
const PINNED_SHARE: usize = 4;

/// An item to be stored. Its key has at most 250 bytes.
pub struct NewItem<'a> {
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
    /// Take the lock. If its last holder died, recover the region. Carry out a flush that is due, and grow
    /// the table if necessary.
    pub fn new(region: &'a Region, grace_periods: &'a GracePeriods, now_s: u32) -> Writer<'a> {
        let local = region.local.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let process_lock = region.shared.then(|| RobustGuard::lock(&region.head().lock));
        let mut writer = Writer { region, grace_periods, process_lock, local, now_s };
        if writer.process_lock.as_ref().is_some_and(|held| held.owner_died) {
            writer.recover();
        }
        if region.is_flush_due(now_s) {
            writer.drop_all_items();
        }
        writer.grow_table();
        writer
    }

    /// The slot number of a key's live item. An expired item is removed.
    pub fn find(&mut self, hash: u64, key: &[u8]) -> Option<usize> {
        let region = self.region;
        // SAFETY: a live slot leads to a complete item, which only the holder of the lock changes.
        let same = |slot: Slot| unsafe { region.raw_item(slot).key() } == key;
        let Some((number, slot)) = region.search(hash, same) else {
            self.take_flushed(hash, key);
            return None;
        };
        let raw = region.raw_item(slot);
        if raw.expired(self.now_s) {
            self.count(raw, |counters| counters.get_expired += 1);
            self.remove_slot(number, slot, Slot::EMPTY);
            return None;
        }
        Some(number)
    }

    /// Drop what was stored before an instant. At most one flush is pending: a new one replaces it.
    pub fn flush(&mut self, at_s: u32) {
        self.region.head().flush_at_s.store(at_s, LOCKED);
        if at_s <= self.now_s {
            self.drop_all_items();
        }
    }

    fn drop_all_items(&mut self) {
        let head = self.region.head();
        self.count_flushed();
        self.clear_table();
        [Queue::Small, Queue::Main].into_iter().for_each(|queue| self.close_segment(queue));
        self.note_flush();
        let in_queue = |segment: &u32| {
            matches!(self.state(*segment), state::SMALL | state::MAIN | state::CONTINUATION)
        };
        let is_kept = |segment: &u32| self.is_pinned(self.first_of_run(*segment));
        let emptied = self.segments().filter(in_queue).filter(|segment| !is_kept(segment));
        emptied.for_each(|segment| self.retire(segment));
        head.items.store(0, LOCKED);
        head.bytes.store(0, LOCKED);
        // Last, so that the next writer completes the flush if this one is killed.
        head.flush_at_s.store(NONE, SHARED);
    }

    /// Store an item, in place of the old one of the same key if there is one. Other items are evicted
    /// until it fits. Returns the slot's number, or `None` if the item can never fit.
    pub fn put(&mut self, new: &NewItem<'_>, old: Option<usize>) -> Option<usize> {
        let parts = ItemParts {
            key: new.key,
            value: Value::Bytes(new.value),
            flags: new.flags,
            expires_s: new.expires_s,
            accessed_s: new.accessed_s,
            cas: Some(if self.region.has_cas.load(LOCKED) { new.cas } else { 0 }),
        };
        let queue = match old {
            None if self.take_ghost(new.hash) => Queue::Main,
            _ => Queue::Small,
        };
        let (offset, bytes) = self.write(parts, queue, 1)?;
        Some(self.link(new.hash, Slot::new(new.hash, offset, new.marks), bytes, old))
    }

    /// Memory for an item whose value is written later: its offset and its length. Its segments are pinned: nothing
    /// empties them until it is unpinned. `None` if there is no room, or if too much is pinned already.
    pub fn reserve(&mut self, hash: u64, parts: ItemParts<'_>) -> Option<(usize, usize)> {
        let pinned: usize = self.local.pins.iter().map(|segment| self.run_length(*segment)).sum();
        if (pinned + parts.bytes() / self.region.layout.segment) * PINNED_SHARE
            >= self.segments_allowed()
        {
            return None;
        }
        let is_new = self.find(hash, parts.key).is_none();
        let queue = if is_new && self.take_ghost(hash) { Queue::Main } else { Queue::Small };
        let (offset, bytes) = self.write(parts, queue, 1)?;
        let segment = self.region.segment_of(offset);
        self.local.pins.push(segment);
        Some((offset, bytes))
    }

    /// The item at this offset is complete, or given up.
    pub fn unpin(&mut self, offset: usize) {
        let segment = self.region.segment_of(offset);
        if let Some(at) = self.local.pins.iter().position(|pinned| *pinned == segment) {
            self.local.pins.swap_remove(at);
        }
    }

    /// Whether an item of this segment, or of the run that it begins, is being written.
    pub fn is_pinned(&self, segment: u32) -> bool {
        self.local.pins.contains(&segment)
    }

    fn run_length(&self, first: u32) -> usize {
        self.region.segment_meta(first).run_length.load(LOCKED) as usize
    }

    /// Let a slot lead to the reserved item at this offset, in place of the old one of the same key if there is one.
    pub fn link_reserved(
        &mut self,
        hash: u64,
        offset: usize,
        bytes: usize,
        marks: Marks,
        old: Option<usize>,
    ) {
        let meta = self.region.segment_meta(self.region.segment_of(offset));
        // SAFETY: the reservation's header was written, and the offset is that of its segment.
        let expires_s = unsafe { RawItem::at(self.region.data_ptr(offset)) }.expires_s();
        if expires_s != 0 {
            // A search for expired items did not find this one in the table.
            let earliest_s = meta.earliest_expiry_s.load(LOCKED);
            meta.earliest_expiry_s.store(earliest_s.min(expires_s), LOCKED);
        }
        self.link(hash, Slot::new(hash, offset, marks), bytes, old);
    }

    /// Let a slot lead to an item that was written, in place of the old one of the same key. Returns its number.
    fn link(&mut self, hash: u64, slot: Slot, bytes: usize, old: Option<usize>) -> usize {
        let (head, new) = (self.region.head(), self.region.raw_item(slot));
        self.local.counters.total_items += 1;
        add(&head.bytes, bytes as u64);
        // The old item may have been evicted to make room.
        let old = old.map(|number| (number, self.region.load_slot(number)));
        if let Some((number, before)) = old.filter(|(_, before)| before.is_live()) {
            let raw = self.region.raw_item(before);
            let bytes = raw.bytes();
            if !new.is_sized_as(raw) {
                self.count_entry(new);
                self.count_exit(raw);
            }
            let uses = (before.uses() + 1).min(USES_MAX);
            self.region.slot(number).store(slot.with_uses(uses).0, SHARED);
            subtract(&head.bytes, bytes as u64);
            self.mark_dead(before.offset(), bytes);
            return number;
        }
        self.count_entry(new);
        add(&head.items, 1);
        let inserted = self.insert_slot(hash, slot);
        inserted.unwrap_or_else(|number| {
            let least = self.region.load_slot(number);
            self.evict(number, least, self.region.raw_item(least));
            self.region.slot(number).store(slot.0, SHARED);
            number
        })
    }

    /// Append an item to a queue: its offset and its length. No slot leads to it yet. Its cas number is
    /// written only if the offset does not imply it.
    fn write(
        &mut self,
        parts: ItemParts<'_>,
        queue: Queue,
        spare: usize,
    ) -> Option<(usize, usize)> {
        let length = self.region.layout.segment;
        let implied = ItemParts { cas: None, ..parts };
        if parts.bytes() > length / 2 {
            let count = parts.bytes().div_ceil(length);
            let first = self.allocate_segments(count, spare)?;
            self.begin_segments(first, count, queue);
            return Some(self.write_at(first as usize * length, &parts));
        }
        loop {
            if let Some(offset) = self.append_offset(queue) {
                let implies_cas = Some(self.region.implied_cas(offset)) == parts.cas;
                let parts = if implies_cas { &implied } else { &parts };
                if offset % length + parts.bytes() <= length {
                    return Some(self.write_at(offset, parts));
                }
            }
            self.end_segment(queue);
            let segment = self.allocate_segments(1, spare)?;
            // A segment may have been opened while another was emptied.
            if self.append_offset(queue).is_none() {
                self.open_segment(segment, queue);
                if spare > 0 {
                    self.reclaim_ahead();
                }
            }
        }
    }

    fn write_at(&self, offset: usize, parts: &ItemParts<'_>) -> (usize, usize) {
        let (region, bytes) = (self.region, parts.bytes());
        let meta = region.segment_meta(region.segment_of(offset));
        // SAFETY: no reader sees a free segment, nor the unused part of an open one; there is room.
        unsafe { parts.write(region.data_ptr(offset)) };
        let expires_s = if parts.expires_s == 0 { NONE } else { parts.expires_s };
        meta.earliest_expiry_s.store(meta.earliest_expiry_s.load(LOCKED).min(expires_s), LOCKED);
        meta.live_bytes.store(meta.live_bytes.load(LOCKED) + bytes as u32, LOCKED);
        meta.used_bytes.store(meta.used_bytes.load(LOCKED) + bytes as u32, SHARED);
        (offset, bytes)
    }

    /// Copy an item to the end of a queue and let its slot lead there. False if there is no room.
    pub fn move_item(
        &mut self,
        number: usize,
        slot: Slot,
        raw: RawItem,
        queue: Queue,
        uses: u64,
    ) -> bool {
        let implied = self.region.implied_cas(slot.offset());
        // SAFETY: the item is complete, and its segment is not reused before it is emptied.
        let parts = unsafe { raw.parts(implied) };
        let Some((offset, bytes)) = self.write(parts, queue, 0) else { return false };
        self.region.slot(number).store(slot.relocated(offset, uses).0, SHARED);
        let head = self.region.head();
        add(&head.bytes, bytes as u64);
        subtract(&head.bytes, raw.bytes() as u64);
        self.mark_dead(slot.offset(), raw.bytes());
        true
    }

    /// The item of a slot. It can be read while the lock is held.
    pub fn item(&self, number: usize) -> Item<'_> {
        let slot = self.region.load_slot(number);
        let raw = self.region.raw_item(slot);
        // SAFETY: a live slot leads to a complete item, which only the holder of the lock changes.
        let value = unsafe { raw.value() };
        raw.item_with(slot, self.region.implied_cas(slot.offset()), value)
    }

    /// Record a read of the item.
    pub fn record_read(&self, number: usize) {
        let slot = self.region.load_slot(number);
        self.region.record_use(number, slot);
        self.region.raw_item(slot).set_accessed(self.now_s);
    }

    /// Record an access to the item that is no read.
    pub fn record_access(&self, number: usize) {
        self.region.raw_item(self.region.load_slot(number)).set_accessed(self.now_s);
    }

    pub fn set_marks(&self, number: usize, marks: Marks) {
        let slot = self.region.load_slot(number);
        self.region.slot(number).store(slot.with_marks(marks).0, SHARED);
    }

    /// Change the expiry in place. False if the item has no word for it.
    pub fn set_expiry(&self, number: usize, expires_s: u32) -> bool {
        let slot = self.region.load_slot(number);
        let changed = self.region.raw_item(slot).set_expiry(expires_s);
        if changed && expires_s != 0 {
            let meta = self.region.segment_meta(self.region.segment_of(slot.offset()));
            meta.earliest_expiry_s
                .store(meta.earliest_expiry_s.load(LOCKED).min(expires_s), LOCKED);
        }
        changed
    }

    /// Write an item again with another value, expiry or cas number. `None` if there is no room: then the
    /// item is removed.
    pub fn rewrite(
        &mut self,
        number: usize,
        value: Option<&[u8]>,
        expires_s: u32,
        cas: u64,
    ) -> Option<usize> {
        let before = self.region.load_slot(number);
        let raw = self.region.raw_item(before);
        // The item's own segment may be emptied to make room, so its bytes are copied first.
        // SAFETY: a live slot leads to a complete item, which only the holder of the lock changes.
        let (key, old) = unsafe { (raw.key().to_vec(), raw.value().to_vec()) };
        let new_item = NewItem {
            hash: hash::of(&key),
            key: &key,
            value: value.unwrap_or(&old),
            flags: raw.flags(),
            expires_s,
            cas,
            marks: before.marks(),
            accessed_s: raw.accessed_s(),
        };
        let Some(written) = self.put(&new_item, Some(number)) else {
            if self.region.load_slot(number).is_live() {
                self.remove(number);
            }
            return None;
        };
        self.local.counters.total_items -= 1;
        if before.fetched() {
            let slot = self.region.load_slot(written);
            self.region.slot(written).store(slot.with_fetched().0, SHARED);
        }
        Some(written)
    }

    pub fn remove(&mut self, number: usize) {
        let slot = self.region.load_slot(number);
        self.remove_slot(number, slot, Slot::EMPTY);
    }
}
