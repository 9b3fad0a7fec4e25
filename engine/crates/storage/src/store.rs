//! The store: regions, and what each command does to an item of them.

use std::io;
use std::sync::Arc;

use crate::counters::Counters;
use crate::entry::{Content, Entry};
use crate::grace::Grace;
use crate::hash;
use crate::item::{Item, Marks};
use crate::layout::{Geometry, NONE};
use crate::memory::Memory;
use crate::region::{OWN, Region};
use crate::rules::{Arithmetic, Deletion, Mode, Outcome, expires_s, refusal};
use crate::shared::Copied;
use crate::wanted::{Found, Wanted};
use crate::writer::Writer;

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of living items, with what each of them costs beside the table.
    pub bytes: u64,
    /// Of the hash table.
    pub table_bytes: u64,
    pub items: u64,
    pub limit_bytes: u64,
    /// What this process has counted.
    pub counters: Counters,
}

/// A store that many threads share, and many processes where it was made in a file.
pub struct Store {
    pub(crate) regions: Box<[Region]>,
    pub(crate) grace: Grace,
    pub(crate) geometry: Geometry,
}

impl Store {
    /// A store that takes at most so many bytes of memory, whatever is in it (64 KiB at least), and
    /// whose table grows with it.
    ///
    /// # Panics
    ///
    /// When the system has no such range of addresses.
    pub fn new(limit_bytes: usize) -> Store {
        Store::with_hash_power(limit_bytes, None).expect("a range of addresses")
    }

    /// The same with a table of 2 to this power slots that never grows, if one is given.
    pub fn with_hash_power(limit_bytes: usize, hash_power: Option<u32>) -> Result<Store, String> {
        let geometry = Geometry::new(limit_bytes, hash_power)?;
        let memory = Memory::anonymous(geometry.length()).map_err(|error| {
            let mebibytes = geometry.limit_bytes >> 20;
            format!("no range of addresses for {mebibytes} MiB: {error}; give it less memory")
        })?;
        let store = Store::over(memory, geometry, false);
        store.lay_out().map_err(|error| error.to_string())?;
        Ok(store)
    }

    /// The store that lives, or is to live, in such memory.
    pub(crate) fn over(memory: Memory, geometry: Geometry, shared: bool) -> Store {
        let memory = Arc::new(memory);
        let layout = geometry.layout();
        let region = |n| Region::new(&memory, geometry.region_at(n), layout, shared);
        let regions = (0..geometry.regions as usize).map(region).collect();
        Store { regions, grace: Grace::new(), geometry }
    }

    /// Begin with nothing, in memory that is all zeros.
    pub(crate) fn lay_out(&self) -> io::Result<()> {
        self.regions[0].store().next_cas.store(1, OWN);
        for region in &self.regions {
            let head = region.head();
            head.flush_at_s.store(NONE, OWN);
            head.open.iter().for_each(|open| open.store(NONE, OWN));
            region.make_table();
            if region.shared {
                crate::lock::make(&head.lock)?;
            }
        }
        Ok(())
    }

    /// Read an item, and optionally give it a new exptime. `read` sees the item's own bytes where
    /// the store is this process's, without a lock; where it is shared, a copy. It must not call
    /// the store: a writer may be waiting for it to end.
    #[inline]
    pub fn get<R>(
        &self,
        key: &[u8],
        exptime: Option<i64>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        match exptime {
            Some(exptime) => self.get_and_touch(key, exptime, now_s, read),
            None => self.get_by(|wanted| wanted.search(), &self.want(key, None), now_s, read),
        }
    }

    /// The same of a key of which something may be known already.
    #[inline]
    pub fn get_wanted<R>(
        &self,
        wanted: &Wanted<'_>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        self.get_by(|wanted| wanted.find(), wanted, now_s, read)
    }

    #[inline]
    fn get_by<R>(
        &self,
        find: impl FnOnce(&Wanted<'_>) -> Option<Found>,
        wanted: &Wanted<'_>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let region = wanted.region;
        if region.flush_due(now_s) {
            self.flush_now(wanted.hash, now_s);
        }
        let visit = self.grace.enter();
        visit.miss();
        let copy;
        // `read` is called in one place, so that it becomes a part of this.
        let item = if region.shared {
            copy = Copied::of(wanted, now_s)?;
            copy.item()
        } else {
            let (number, slot, placed) = find(wanted)?;
            if placed.expired(now_s) {
                drop(visit);
                self.drop_expired(wanted.key, now_s);
                return None;
            }
            region.use_slot(number, slot);
            // SAFETY: what a slot leads to is not written to again while the visit lasts.
            let value = unsafe { placed.value() };
            let item = placed.describe(slot, region.implied_cas(slot.offset()), value);
            placed.access(now_s);
            item
        };
        visit.hit();
        Some(read(&item))
    }

    #[cold]
    fn flush_now(&self, hash: u64, now_s: u32) {
        drop(self.writer(hash, now_s));
    }

    /// Find and remove an item that has expired, unless it has been stored anew meanwhile.
    #[cold]
    fn drop_expired(&self, key: &[u8], now_s: u32) {
        drop(self.entry(key, now_s));
    }

    /// Read an item and give it a new exptime.
    #[inline(never)]
    pub fn get_and_touch<R>(
        &self,
        key: &[u8],
        exptime: i64,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let mut entry = self.entry(key, now_s);
        if entry.item().is_none() {
            entry.counters().touch_misses += 1;
            return None;
        }
        entry.counters().touch_hits += 1;
        entry.set_expiry(expires_s(exptime, now_s));
        entry.used();
        entry.item().map(|item| read(&item))
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
        let mut entry = self.entry(key, now_s);
        entry.counters().sets += 1;
        if let Some(refused) = refusal(mode, expected_cas, &mut entry) {
            return Some((refused, 0));
        }
        let cas = entry.fresh_cas();
        let joined;
        let mut content = Content {
            value,
            flags,
            expires_s: expires_s(exptime, now_s),
            cas,
            marks: Marks::default(),
        };
        if let (Mode::Append | Mode::Prepend, Some(item)) = (mode, entry.item()) {
            joined = match mode {
                Mode::Append => [item.value, value].concat(),
                _ => [value, item.value].concat(),
            };
            (content.flags, content.expires_s) = (item.flags, item.expires_s);
            content.marks.binary_key = item.marks.binary_key;
            content.value = &joined;
        }
        entry.put(&content).then_some((Outcome::Stored, cas))
    }

    /// The value length of an item, for those who must know before they append to it.
    pub fn length(&self, key: &[u8], now_s: u32) -> Option<usize> {
        self.entry(key, now_s).item().map(|item| item.value.len())
    }

    pub fn delete(&self, key: &[u8], now_s: u32) -> bool {
        self.delete_if(key, 0, now_s) == Deletion::Deleted
    }

    /// Delete an item if it has this unique number; 0 is any.
    pub fn delete_if(&self, key: &[u8], cas: u64, now_s: u32) -> Deletion {
        let mut entry = self.entry(key, now_s);
        let Some(item) = entry.item() else {
            entry.counters().delete_misses += 1;
            return Deletion::NotFound;
        };
        if cas != 0 && item.cas != cas {
            return Deletion::Exists;
        }
        entry.counters().delete_hits += 1;
        entry.remove();
        Deletion::Deleted
    }

    /// Remove an item that must not be served any more; not counted as a delete.
    pub fn discard(&self, key: &[u8], now_s: u32) {
        self.entry(key, now_s).remove();
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

    pub fn touch(&self, key: &[u8], exptime: i64, now_s: u32) -> bool {
        self.get_and_touch(key, exptime, now_s, |_| ()).is_some()
    }

    /// The entry of a key, for those who read and change it as one. Its region stays locked until
    /// the entry is dropped.
    pub fn entry<'a>(&'a self, key: &'a [u8], now_s: u32) -> Entry<'a> {
        let hash = hash::of(key);
        Entry::new(self.writer(hash, now_s), hash, key)
    }

    /// Drop what is stored before an instant: now for a delay of 0 or less, later otherwise.
    pub fn flush(&self, delay: i64, now_s: u32) {
        let at_s = if delay <= 0 { now_s } else { expires_s(delay, now_s) };
        self.writers(now_s).for_each(|mut writer| writer.flush(at_s));
    }

    /// What the store holds and has counted.
    pub fn usage(&self, now_s: u32) -> Usage {
        let mut usage = Usage { limit_bytes: self.geometry.limit_bytes, ..Usage::default() };
        for writer in self.writers(now_s) {
            let head = writer.region.head();
            usage.bytes += head.bytes.load(OWN);
            usage.items += head.items.load(OWN);
            usage.table_bytes += writer.table_bytes() as u64;
            usage.counters.add(&writer.local.counters);
        }
        let (hits, misses) = self.grace.counted();
        usage.counters.get_hits += hits;
        usage.counters.get_misses += misses;
        usage
    }

    /// Segments that were ever begun, by any process: how far the store has been written. Without a
    /// lock.
    pub fn grown(&self) -> u64 {
        self.regions.iter().map(|region| region.head().order.load(OWN)).sum()
    }

    /// Count from 0 again.
    pub fn reset_counters(&self) {
        for region in &self.regions {
            let mut local = region.local.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            local.counters = Counters::default();
        }
        self.grace.reset_counts();
    }

    #[inline]
    pub(crate) fn region(&self, hash: u64) -> &Region {
        // Bits between those of the buckets and those of the tag; a product is faster than a rest.
        let bits = (hash >> 32 & 0xffff) as usize;
        &self.regions[(bits * self.regions.len()) >> 16]
    }

    pub(crate) fn writer(&self, hash: u64, now_s: u32) -> Writer<'_> {
        Writer::new(self.region(hash), &self.grace, now_s)
    }

    pub(crate) fn writers(&self, now_s: u32) -> impl Iterator<Item = Writer<'_>> {
        self.regions.iter().map(move |region| Writer::new(region, &self.grace, now_s))
    }
}
