//! A key of the store whose region is locked, so that reads and changes of its item are one atomic step.
//! The meta commands are made of these; the classic commands are in `store.rs`.

use crate::counters::Counters;
use crate::items::item::Item;
use crate::items::marks::Marks;
use crate::items::number;
use crate::memory::atomics::LOCKED;
use crate::region::writer::{NewItem, Writer};
use crate::store::outcome::Arithmetic;

/// The entry of a key, whether there is an item or not.
pub struct Entry<'a> {
    pub(crate) writer: Writer<'a>,
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) slot: Option<usize>,
}

/// The content that `Entry::put` stores.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    pub value: &'a [u8],
    pub flags: u32,
    /// Seconds since the epoch; 0 means never.
    pub expires_s: u32,
    pub cas: u64,
    pub marks: Marks,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(mut writer: Writer<'a>, hash: u64, key: &'a [u8]) -> Entry<'a> {
        let slot = writer.find(hash, key);
        Entry { writer, hash, key, slot }
    }
}

impl Entry<'_> {
    pub fn item(&self) -> Option<Item<'_>> {
        self.slot.map(|slot| self.writer.item(slot))
    }

    /// The cas number that a store command compares, if there is an item: without cas numbers, none that a client has.
    pub fn compared_cas(&self) -> Option<u64> {
        let has_cas = self.writer.region.has_cas.load(LOCKED);
        self.item().map(|item| if has_cas { item.cas } else { u64::MAX })
    }

    /// Count something about the key, and about its item if there is one.
    pub fn count(&mut self, mut change: impl FnMut(&mut Counters)) {
        match self.slot {
            Some(slot) => {
                let raw = self.writer.region.raw_item(self.writer.region.load_slot(slot));
                self.writer.count(raw, change);
            }
            None => change(&mut self.writer.local.counters),
        }
    }

    /// Count a command that stores a value of `value_bytes` with these flags, whether it is stored or not.
    pub fn count_set(&mut self, value_bytes: usize, flags: u32) {
        self.count_new(value_bytes, flags, |counters| counters.sets += 1);
    }

    /// Count something about an item of `value_bytes` that may not be stored.
    fn count_new(&mut self, value_bytes: usize, flags: u32, change: impl Fn(&mut Counters)) {
        let local = &mut *self.writer.local;
        change(&mut local.counters);
        if let Some(classes) = self.writer.region.size_classes.get() {
            let class = classes.of(self.key.len(), value_bytes, flags != 0);
            change(&mut local.by_class[class].counters);
            local.by_class[class].was_used = true;
        }
    }

    /// A cas number that no item had before. It stays the same until an item is stored.
    pub fn fresh_cas(&self) -> u64 {
        self.writer.fresh_cas()
    }

    /// Record a read of the item.
    pub fn record_read(&mut self) {
        if let Some(slot) = self.slot {
            self.writer.record_read(slot);
        }
    }

    pub fn set_expiry(&mut self, expires_s: u32) {
        if let Some(slot) = self.slot
            && !self.writer.set_expiry(slot, expires_s)
        {
            let cas = self.writer.item(slot).cas;
            self.slot = self.writer.rewrite(slot, None, expires_s, cas);
        }
    }

    pub fn set_marks(&mut self, marks: Marks) {
        if let Some(slot) = self.slot {
            self.writer.set_marks(slot, marks);
        }
    }

    pub fn set_cas(&mut self, cas: u64) {
        if let Some(slot) = self.slot {
            let expires_s = self.writer.item(slot).expires_s;
            self.slot = self.writer.rewrite(slot, None, expires_s, cas);
        }
    }

    /// Store an item, in place of the present one if there is one. False if it can never fit.
    pub fn put(&mut self, content: &Content<'_>) -> bool {
        let item = NewItem {
            hash: self.hash,
            key: self.key,
            value: content.value,
            flags: content.flags,
            expires_s: content.expires_s,
            cas: content.cas,
            marks: content.marks,
            accessed_s: self.writer.now_s,
        };
        let slot = self.writer.put(&item, self.slot);
        if slot.is_none() {
            self.count_new(content.value.len(), content.flags, |counters| counters.no_room += 1);
        }
        self.slot = slot.or_else(|| self.writer.find(self.hash, self.key));
        slot.is_some()
    }

    /// Remove the item. This is not counted as a delete.
    pub fn remove(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.writer.remove(slot);
        }
    }

    /// Add to the number in the item's value (it wraps at 2⁶⁴) or subtract from it (it stops at 0), if the
    /// item has the expected cas number (0 is any). `cas` is its new number.
    pub fn arithmetic(
        &mut self,
        delta: u64,
        increment: bool,
        expected_cas: u64,
        cas: u64,
    ) -> Arithmetic {
        let Some(slot) = self.slot else {
            match increment {
                true => self.count(|counters| counters.incr_misses += 1),
                false => self.count(|counters| counters.decr_misses += 1),
            }
            return Arithmetic::NotFound;
        };
        let item = self.writer.item(slot);
        // memcached, too, checks this before the cas number, and other non-numeric values after it.
        if item.value.is_empty() {
            return Arithmetic::NonNumeric;
        }
        if expected_cas != 0 && item.cas != expected_cas {
            return Arithmetic::Exists;
        }
        let Some(before) = number::parse(item.value) else {
            return Arithmetic::NonNumeric;
        };
        let after =
            if increment { before.wrapping_add(delta) } else { before.saturating_sub(delta) };
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(after).as_bytes();
        let (flags, expires_s, length) = (item.flags, item.expires_s, item.value.len());
        if digits.len() > length {
            // As in memcached, this is a new item: not read yet, and not stale.
            let marks = Marks { binary_key: item.marks.binary_key, ..Marks::default() };
            if !self.put(&Content { value: digits, flags, expires_s, cas, marks }) {
                return Arithmetic::NoRoom;
            }
        } else {
            // The reply has its number, but that does not count as a fetch.
            self.writer.record_access(slot);
            let value = number::padded(digits, length);
            self.slot = self.writer.rewrite(slot, Some(&value), expires_s, cas);
            if self.slot.is_none() {
                return Arithmetic::NoRoom;
            }
        }
        match increment {
            true => self.count(|counters| counters.incr_hits += 1),
            false => self.count(|counters| counters.decr_hits += 1),
        }
        Arithmetic::Number(after)
    }
}
