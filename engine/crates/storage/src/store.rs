//! The store: shards behind locks, and memcached's rules for each command.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;

use crate::entry::Entry;
use crate::shard::{Counters, Fresh, Item, Marks, Mode, Outcome, Shard};

/// A shard holds at least this much, so that the largest items fit many times over.
const SHARD_BYTES_LEAST: usize = 16 << 20;
const SHARDS_MOST: usize = 16;
/// Exptimes up to this are from now on, above it they are instants.
const RELATIVE_EXPTIME_MAX_S: i64 = 60 * 60 * 24 * 30;

/// What came of `incr` or `decr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Number(u64),
    NotFound,
    /// It has another unique number than the one that was asked for.
    Exists,
    NonNumeric,
    /// The longer number would never fit.
    NoRoom,
}

/// What came of deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    Deleted,
    NotFound,
    /// It has another unique number than the one that was asked for.
    Exists,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub bytes: u64,
    pub items: u64,
    pub limit_bytes: u64,
    pub counters: Counters,
}

/// A store that many threads share.
pub struct Store {
    shards: Vec<Mutex<Shard>>,
    hasher: FixedState,
    next_cas: AtomicU64,
    limit_bytes: usize,
}

impl Store {
    /// A store whose items, with all that each of them costs, take at most so many bytes.
    pub fn new(limit_bytes: usize) -> Store {
        let count = (limit_bytes / SHARD_BYTES_LEAST).clamp(1, SHARDS_MOST);
        Store {
            shards: (0..count).map(|_| Mutex::new(Shard::new(limit_bytes / count))).collect(),
            hasher: FixedState::with_seed(0x6361_6368_656d_6172),
            next_cas: AtomicU64::new(1),
            limit_bytes,
        }
    }

    /// Read an item inside the shard's lock, and optionally give it a new exptime.
    pub fn get<R>(
        &self,
        key: &[u8],
        exptime: Option<i64>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let (hash, mut shard) = self.shard(key, now_s);
        let Some(slot) = shard.find(hash, key, now_s) else {
            match exptime {
                Some(_) => shard.counters.touch_misses += 1,
                None => shard.counters.get_misses += 1,
            }
            return None;
        };
        match exptime {
            Some(exptime) => {
                shard.counters.touch_hits += 1;
                shard.set_expiry(slot, expires_s(exptime, now_s));
            }
            None => shard.counters.get_hits += 1,
        }
        shard.used_now(slot, now_s);
        Some(read(&shard.item(slot)))
    }

    /// Store a value. `None` when no room can be made for it.
    pub fn store(
        &self,
        mode: Mode,
        key: &[u8],
        flags: u32,
        exptime: i64,
        value: &[u8],
        now_s: u32,
    ) -> Option<Outcome> {
        self.store_if(0, mode, key, flags, exptime, value, now_s).map(|(outcome, _)| outcome)
    }

    /// The same if the item that is there has this unique number (0 is any), with that of what was
    /// stored: 0 where nothing was.
    #[expect(clippy::too_many_arguments, reason = "they are a storage command's own")]
    pub fn store_if(
        &self,
        expected_cas: u64,
        mode: Mode,
        key: &[u8],
        flags: u32,
        exptime: i64,
        value: &[u8],
        now_s: u32,
    ) -> Option<(Outcome, u64)> {
        let (hash, mut shard) = self.shard(key, now_s);
        shard.counters.sets += 1;
        let old = shard.find(hash, key, now_s);
        if let Some(refused) = refusal(mode, expected_cas, old, &mut shard, now_s) {
            return Some((refused, 0));
        }
        let joined;
        let mut fresh = Fresh {
            hash,
            key,
            value,
            flags,
            expires_s: expires_s(exptime, now_s),
            cas: self.next_cas.fetch_add(1, Ordering::Relaxed),
            marks: Marks::default(),
            now_s,
        };
        if let (Mode::Append | Mode::Prepend, Some(slot)) = (mode, old) {
            let item = shard.item(slot);
            joined = match mode {
                Mode::Append => [item.value, value].concat(),
                _ => [value, item.value].concat(),
            };
            fresh.flags = item.flags;
            (fresh.expires_s, fresh.marks) = (item.expires_s, item.marks);
            fresh.value = &joined;
        }
        shard.put(&fresh, old).map(|_| (Outcome::Stored, fresh.cas))
    }

    /// The value length of an item, for those who must know before they append to it.
    pub fn length(&self, key: &[u8], now_s: u32) -> Option<usize> {
        let (hash, mut shard) = self.shard(key, now_s);
        let slot = shard.find(hash, key, now_s)?;
        Some(shard.item(slot).value.len())
    }

    pub fn delete(&self, key: &[u8], now_s: u32) -> bool {
        self.delete_if(key, 0, now_s) == Deletion::Deleted
    }

    /// Delete an item if it has this unique number; 0 is any.
    pub fn delete_if(&self, key: &[u8], cas: u64, now_s: u32) -> Deletion {
        let (hash, mut shard) = self.shard(key, now_s);
        let Some(slot) = shard.find(hash, key, now_s) else {
            shard.counters.delete_misses += 1;
            return Deletion::NotFound;
        };
        if cas != 0 && shard.item(slot).cas != cas {
            return Deletion::Exists;
        }
        shard.counters.delete_hits += 1;
        shard.remove(slot);
        Deletion::Deleted
    }

    /// Remove an item that must not be served any more; not counted as a delete.
    pub fn discard(&self, key: &[u8], now_s: u32) {
        let (hash, mut shard) = self.shard(key, now_s);
        if let Some(slot) = shard.find(hash, key, now_s) {
            shard.remove(slot);
        }
    }

    /// Add to a number (it wraps at 2⁶⁴) or take from it (it stops at 0).
    pub fn arithmetic(&self, key: &[u8], delta: u64, increment: bool, now_s: u32) -> Arithmetic {
        self.arithmetic_if(key, delta, increment, 0, now_s).0
    }

    /// The same if the item has this unique number (0 is any), with its new one: 0 where nothing
    /// was changed.
    pub fn arithmetic_if(
        &self,
        key: &[u8],
        delta: u64,
        increment: bool,
        expected_cas: u64,
        now_s: u32,
    ) -> (Arithmetic, u64) {
        let mut entry = self.entry(key, now_s);
        let cas = entry.fresh_cas();
        match entry.arithmetic(delta, increment, expected_cas, cas) {
            number @ Arithmetic::Number(_) => (number, cas),
            refused => (refused, 0),
        }
    }

    /// The entry of a key, for those who read and change it as one. Its shard stays locked until
    /// the entry is dropped.
    pub fn entry<'a>(&'a self, key: &'a [u8], now_s: u32) -> Entry<'a> {
        let (hash, mut shard) = self.shard(key, now_s);
        let slot = shard.find(hash, key, now_s);
        Entry { shard, hash, key, slot, next_cas: &self.next_cas, now_s }
    }

    pub fn touch(&self, key: &[u8], exptime: i64, now_s: u32) -> bool {
        let (hash, mut shard) = self.shard(key, now_s);
        let found = shard.find(hash, key, now_s);
        match found {
            Some(slot) => {
                shard.counters.touch_hits += 1;
                shard.set_expiry(slot, expires_s(exptime, now_s));
                shard.used_now(slot, now_s);
            }
            None => shard.counters.touch_misses += 1,
        }
        found.is_some()
    }

    /// Drop what is stored before an instant: now for a delay of 0 or less, later otherwise.
    pub fn flush(&self, delay: i64, now_s: u32) {
        let at_s = if delay <= 0 { now_s } else { expires_s(delay, now_s) };
        self.all().for_each(|mut shard| shard.flush(at_s, now_s));
    }

    /// What the store holds and has counted.
    pub fn usage(&self, now_s: u32) -> Usage {
        let mut usage = Usage { limit_bytes: self.limit_bytes as u64, ..Usage::default() };
        for mut shard in self.all() {
            shard.advance(now_s);
            usage.bytes += shard.used() as u64;
            usage.items += shard.items() as u64;
            usage.counters.add(&shard.counters);
        }
        usage
    }

    /// Count from 0 again.
    pub fn reset_counters(&self) {
        self.all().for_each(|mut shard| shard.counters = Counters::default());
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn shard(&self, key: &[u8], now_s: u32) -> (u64, MutexGuard<'_, Shard>) {
        let hash = self.hasher.hash_one(key);
        // The table uses the hash's low bits and its seven highest; take others for the shard.
        let index = (hash >> 32) as usize % self.shards.len();
        let mut shard = self.shards[index].lock().unwrap_or_else(PoisonError::into_inner);
        shard.advance(now_s);
        (hash, shard)
    }
}

/// Whether a mode forbids to store, given the item that is there.
fn refusal(
    mode: Mode,
    expected_cas: u64,
    old: Option<u32>,
    shard: &mut Shard,
    now_s: u32,
) -> Option<Outcome> {
    let mode = match mode {
        Mode::Set | Mode::Add | Mode::Replace if expected_cas != 0 => Mode::Cas(expected_cas),
        other => other,
    };
    match (mode, old) {
        (Mode::Append | Mode::Prepend, Some(slot))
            if expected_cas != 0 && shard.item(slot).cas != expected_cas =>
        {
            Some(Outcome::Exists)
        }
        (Mode::Add, Some(slot)) => {
            // A refused add still counts as a use of the item.
            shard.used_now(slot, now_s);
            Some(Outcome::NotStored)
        }
        (Mode::Replace | Mode::Append | Mode::Prepend, None) => Some(Outcome::NotStored),
        (Mode::Cas(_), None) => {
            shard.counters.cas_misses += 1;
            Some(Outcome::NotFound)
        }
        (Mode::Cas(expected), Some(slot)) if shard.item(slot).cas != expected => {
            shard.counters.cas_badval += 1;
            Some(Outcome::Exists)
        }
        (Mode::Cas(_), Some(_)) => {
            shard.counters.cas_hits += 1;
            None
        }
        _ => None,
    }
}

/// An exptime as an instant: 0 never, negative at once, small from now on, large as it is.
pub fn expires_s(exptime: i64, now_s: u32) -> u32 {
    match exptime {
        0 => 0,
        ..0 => 1,
        1..=RELATIVE_EXPTIME_MAX_S => now_s.saturating_add(exptime as u32),
        _ => u32::try_from(exptime).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_700_000_000;

    fn value(store: &Store, key: &[u8], now_s: u32) -> Option<Vec<u8>> {
        store.get(key, None, now_s, |item| item.value.to_vec())
    }

    fn set(store: &Store, key: &[u8], exptime: i64, bytes: &[u8], now_s: u32) {
        let stored = store.store(Mode::Set, key, 0, exptime, bytes, now_s);
        assert_eq!(stored, Some(Outcome::Stored));
    }

    #[test]
    fn items_expire_at_their_second() {
        let store = Store::new(1 << 20);
        set(&store, b"relative", 10, b"x", NOW);
        set(&store, b"instant", i64::from(NOW) + 10, b"x", NOW);
        set(&store, b"past", -1, b"x", NOW);
        for key in [&b"relative"[..], b"instant"] {
            assert!(value(&store, key, NOW + 9).is_some());
            assert!(value(&store, key, NOW + 10).is_none());
        }
        assert!(value(&store, b"past", NOW).is_none());
        assert_eq!(store.usage(NOW).items, 0, "expired items return their memory");
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let store = Store::new(1 << 20);
        let name = |i: u32| format!("key-{i}").into_bytes();
        for i in 0..2000 {
            set(&store, &name(i), 0, &[0; 1000], NOW);
            assert!(value(&store, &name(0), NOW).is_some(), "key-0 is in use all the time");
        }
        assert!(value(&store, &name(1), NOW).is_none());
        assert!(value(&store, &name(1999), NOW).is_some());
        let usage = store.usage(NOW);
        assert!(usage.bytes <= 1 << 20);
        assert_eq!(usage.counters.evictions + usage.items, 2000);
    }

    #[test]
    fn a_flush_waits_for_its_time() {
        let store = Store::new(1 << 20);
        set(&store, b"old", 0, b"x", NOW);
        store.flush(2, NOW);
        assert!(value(&store, b"old", NOW + 1).is_some());
        set(&store, b"new", 0, b"x", NOW + 2);
        assert!(value(&store, b"old", NOW + 2).is_none());
        assert!(value(&store, b"new", NOW + 3).is_some());
        store.flush(0, NOW + 3);
        assert!(value(&store, b"new", NOW + 3).is_none());
    }
}
