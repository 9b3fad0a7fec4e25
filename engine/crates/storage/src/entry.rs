//! One key of the store with its region locked: what is read and what is changed on it happen as
//! one. The meta protocol's commands are made of these; the classic ones are in `store.rs`.

use crate::counters::Counters;
use crate::item::{Item, Marks};
use crate::number;
use crate::rules::Arithmetic;
use crate::writer::{Fresh, Writer};

/// The entry of a key, whether there is an item or not.
pub struct Entry<'a> {
    pub(crate) writer: Writer<'a>,
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) slot: Option<usize>,
}

/// What is to be stored in an entry.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    pub value: &'a [u8],
    pub flags: u32,
    /// Seconds since the epoch; 0 is never.
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

    /// What the region counts.
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.writer.local.counters
    }

    /// A unique number that no item had before; the same until one is stored.
    pub fn fresh_cas(&self) -> u64 {
        self.writer.fresh_cas()
    }

    /// The item has been used now.
    pub fn used(&mut self) {
        if let Some(slot) = self.slot {
            self.writer.used_now(slot);
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

    /// Store, in place of the item that is there if there is one. False when it never would fit.
    pub fn put(&mut self, content: &Content<'_>) -> bool {
        let fresh = Fresh {
            hash: self.hash,
            key: self.key,
            value: content.value,
            flags: content.flags,
            expires_s: content.expires_s,
            cas: content.cas,
            marks: content.marks,
            accessed_s: self.writer.now_s,
        };
        let slot = self.writer.put(&fresh, self.slot);
        self.slot = slot.or_else(|| self.writer.find(self.hash, self.key));
        slot.is_some()
    }

    /// Remove the item; not counted as a delete.
    pub fn remove(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.writer.remove(slot);
        }
    }

    /// Add to the number that the item holds (it wraps at 2⁶⁴) or take from it (it stops at 0), if
    /// the item has this unique number (0 is any). `cas` is its new one.
    pub fn arithmetic(
        &mut self,
        delta: u64,
        increment: bool,
        expected_cas: u64,
        cas: u64,
    ) -> Arithmetic {
        let Some(slot) = self.slot else {
            match increment {
                true => self.counters().incr_misses += 1,
                false => self.counters().decr_misses += 1,
            }
            return Arithmetic::NotFound;
        };
        let item = self.writer.item(slot);
        // Before the unique number is looked at, as in memcached; what else is no number comes behind.
        if item.value.is_empty() {
            return Arithmetic::NonNumeric;
        }
        if expected_cas != 0 && item.cas != expected_cas {
            return Arithmetic::Exists;
        }
        let Some(before) = number::read(item.value) else {
            return Arithmetic::NonNumeric;
        };
        let after =
            if increment { before.wrapping_add(delta) } else { before.saturating_sub(delta) };
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(after).as_bytes();
        let (flags, expires_s, length) = (item.flags, item.expires_s, item.value.len());
        if digits.len() > length {
            // A new item, as in memcached: nobody has read it, and it is not stale.
            let marks = Marks { binary_key: item.marks.binary_key, ..Marks::default() };
            if !self.put(&Content { value: digits, flags, expires_s, cas, marks }) {
                return Arithmetic::NoRoom;
            }
        } else {
            // Its number is told, but the item was not fetched.
            self.writer.accessed_now(slot);
            let value = number::padded(digits, length);
            self.slot = self.writer.rewrite(slot, Some(&value), expires_s, cas);
            if self.slot.is_none() {
                return Arithmetic::NoRoom;
            }
        }
        match increment {
            true => self.counters().incr_hits += 1,
            false => self.counters().decr_hits += 1,
        }
        Arithmetic::Number(after)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Content, Marks, Store};

    const NOW: u32 = 1_700_000_000;

    #[test]
    fn an_entry_is_changed_in_place() {
        let store = Store::new(1 << 20);
        let mut entry = store.entry(b"k", NOW);
        assert!(entry.item().is_none());
        let cas = entry.fresh_cas();
        let marks = Marks { binary_key: true, ..Marks::default() };
        let content = Content { value: b"v", flags: 7, expires_s: NOW + 9, cas, marks };
        assert!(entry.put(&content));
        entry.set_marks(Marks { stale: true, ..marks });
        entry.set_cas(99);
        drop(entry);
        let mut entry = store.entry(b"k", NOW + 5);
        let item = entry.item().expect("an item");
        assert_eq!((item.value, item.flags, item.cas), (&b"v"[..], 7, 99));
        assert_eq!((item.accessed_s, item.expires_s, item.fetched), (NOW, NOW + 9, false));
        assert!(item.marks.stale && item.marks.binary_key && !item.marks.won);
        entry.used();
        let item = entry.item().expect("an item");
        assert_eq!((item.accessed_s, item.fetched), (NOW + 5, true));
        entry.set_expiry(NOW + 6);
        drop(entry);
        assert!(store.entry(b"k", NOW + 6).item().is_none(), "it has expired");
    }

    #[test]
    fn an_entry_is_removed_once() {
        let store = Store::new(1 << 20);
        let mut entry = store.entry(b"k", NOW);
        let marks = Marks::default();
        assert!(entry.put(&Content { value: b"v", flags: 0, expires_s: 0, cas: 1, marks }));
        entry.remove();
        entry.remove();
        assert!(entry.item().is_none());
        drop(entry);
        assert_eq!(store.usage(NOW).items, 0);
    }
}
