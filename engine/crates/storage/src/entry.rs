//! One key of the store with its shard locked: what is read and what is changed on it happen as one.
//! The meta protocol's commands are made of these; the classic ones are in `store.rs`.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::number;
use crate::shard::{Counters, Fresh, Item, Marks, Shard};
use crate::store::Arithmetic;

/// The entry of a key, whether there is an item or not.
pub struct Entry<'a> {
    pub(crate) shard: MutexGuard<'a, Shard>,
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) slot: Option<u32>,
    pub(crate) next_cas: &'a AtomicU64,
    pub(crate) now_s: u32,
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

impl Entry<'_> {
    pub fn item(&self) -> Option<Item<'_>> {
        self.slot.map(|slot| self.shard.item(slot))
    }

    /// What the shard counts.
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.shard.counters
    }

    /// A unique number that no item had before.
    pub fn fresh_cas(&self) -> u64 {
        self.next_cas.fetch_add(1, Ordering::Relaxed)
    }

    /// The item is the most recently used from now on.
    pub fn used(&mut self) {
        if let Some(slot) = self.slot {
            self.shard.used_now(slot, self.now_s);
        }
    }

    pub fn set_expiry(&mut self, expires_s: u32) {
        if let Some(slot) = self.slot {
            self.shard.set_expiry(slot, expires_s);
        }
    }

    pub fn set_marks(&mut self, marks: Marks) {
        if let Some(slot) = self.slot {
            self.shard.set_marks(slot, marks);
        }
    }

    pub fn set_cas(&mut self, cas: u64) {
        if let Some(slot) = self.slot {
            self.shard.set_cas(slot, cas);
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
            now_s: self.now_s,
        };
        let slot = self.shard.put(&fresh, self.slot);
        self.slot = slot.or(self.slot);
        slot.is_some()
    }

    /// Remove the item; not counted as a delete.
    pub fn remove(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.shard.remove(slot);
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
                true => self.shard.counters.incr_misses += 1,
                false => self.shard.counters.decr_misses += 1,
            }
            return Arithmetic::NotFound;
        };
        let item = self.shard.item(slot);
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
        if digits.len() <= item.value.len() {
            number::overwrite(self.shard.rewrite(slot, cas, self.now_s), digits);
        } else {
            let Item { flags, expires_s, marks, .. } = item;
            if !self.put(&Content { value: digits, flags, expires_s, cas, marks }) {
                return Arithmetic::NoRoom;
            }
        }
        match increment {
            true => self.shard.counters.incr_hits += 1,
            false => self.shard.counters.decr_hits += 1,
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
