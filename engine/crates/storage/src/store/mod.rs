//! The store: its regions, and what each command does to an item.

pub mod entry;
mod evictions;
pub mod file;
#[cfg(test)]
mod growth_test;
mod iteration;
mod kept;
mod limit;
pub mod outcome;
mod preconditions;
#[cfg(test)]
mod reclaim_test;
pub mod reservation;
pub mod usage;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::items::item::Item;
use crate::items::marks::Marks;
use crate::memory::atomics::LOCKED;
use crate::memory::layout::{Geometry, NONE};
use crate::memory::mapping::Memory;
use crate::reclamation::grace_periods::GracePeriods;
use crate::region::Region;
use crate::region::lookup::{Found, Lookup};
use crate::region::optimistic_read::CopiedItem;
use crate::region::robust_mutex;
use crate::region::writer::Writer;
use crate::store::entry::{Content, Entry};
use crate::store::outcome::{Arithmetic, Deletion, Mode, Outcome, expires_s};
use crate::table::hash;

/// A store for many threads, and for many processes if it was created in a file.
pub struct Store {
    pub(crate) regions: Box<[Region]>,
    pub(crate) grace_periods: GracePeriods,
    pub(crate) geometry: Geometry,
    /// The memory limit, which the regions may still be above after it was lowered.
    limit_bytes: AtomicU64,
}

impl Store {
    /// A store that never uses more memory than this limit (at least 64 KiB), and whose table grows.
    ///
    /// # Panics
    ///
    /// If the system cannot reserve the address range.
    pub fn new(limit_bytes: usize) -> Store {
        Store::with_hash_power(limit_bytes, None).expect("a range of addresses")
    }

    /// The same; with a hash power, the table has 2 to this power slots and never grows.
    pub fn with_hash_power(limit_bytes: usize, hash_power: Option<u32>) -> Result<Store, String> {
        Store::of(Geometry::new(limit_bytes, hash_power)?)
    }

    /// Whether there can be a store of this size; an error says why not.
    pub fn check_size(limit_bytes: usize, hash_power: Option<u32>) -> Result<(), String> {
        Geometry::new(limit_bytes, hash_power).map(|_| ())
    }

    fn of(geometry: Geometry) -> Result<Store, String> {
        let memory = Memory::anonymous(geometry.length()).map_err(|error| {
            let mebibytes = geometry.limit_bytes >> 20;
            format!(
                "cannot reserve {mebibytes} MiB of addresses: {error}; give the store less memory"
            )
        })?;
        let store = Store::in_memory(memory, geometry, false);
        store.initialize().map_err(|error| error.to_string())?;
        Ok(store)
    }

    /// A store in this memory, which holds one already or will be initialized.
    pub(crate) fn in_memory(memory: Memory, geometry: Geometry, shared: bool) -> Store {
        let memory = Arc::new(memory);
        let layout = geometry.layout();
        let region = |n| Region::new(&memory, geometry.region_at(n), layout, shared);
        let regions: Box<[Region]> = (0..geometry.regions as usize).map(region).collect();
        let limit = geometry.region_limit(geometry.limit_bytes);
        regions.iter().for_each(|region| region.set_limit(limit));
        let limit_bytes = AtomicU64::new(geometry.limit_bytes);
        Store { regions, grace_periods: GracePeriods::new(), geometry, limit_bytes }
    }

    /// Initialize an empty store, in memory that is all zeros.
    pub(crate) fn initialize(&self) -> io::Result<()> {
        self.regions[0].store().next_cas.store(1, LOCKED);
        for region in &self.regions {
            let head = region.head();
            head.flush_at_s.store(NONE, LOCKED);
            head.open_segments.iter().for_each(|open| open.store(NONE, LOCKED));
            region.initialize_table();
            if region.shared {
                robust_mutex::init(&head.lock)?;
            }
        }
        Ok(())
    }

    /// A lookup of a key: the known one if it is of these very bytes, or else a new one.
    #[inline]
    pub fn lookup<'a>(&'a self, key: &'a [u8], known: Option<Lookup<'a>>) -> Lookup<'a> {
        match known {
            Some(lookup) if std::ptr::eq(lookup.key, key) => lookup,
            _ => {
                let hash = hash::of(key);
                Lookup::new(key, hash, self.region(hash))
            }
        }
    }

    /// A lookup of a key that will be read soon: its buckets of the table are prefetched.
    #[inline]
    pub fn prefetch<'a>(&'a self, key: &'a [u8]) -> Lookup<'a> {
        let mut lookup = self.lookup(key, None);
        lookup.prefetch_table();
        lookup
    }

    /// Read an item, and optionally give it a new exptime. Without an exptime this takes no lock, unless
    /// the item has expired or a flush is due. `read` gets the item's own bytes; if processes share the
    /// store, a copy. It must not call the store: a writer may wait for it to end.
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
            None => self.get_by(|lookup| lookup.search(), &self.lookup(key, None), now_s, read),
        }
    }

    /// Read an item whose lookup may have been prefetched.
    #[inline]
    pub fn get_by_lookup<R>(
        &self,
        lookup: &Lookup<'_>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        self.get_by(|lookup| lookup.find(), lookup, now_s, read)
    }

    #[inline]
    fn get_by<R>(
        &self,
        find: impl FnOnce(&Lookup<'_>) -> Option<Found>,
        lookup: &Lookup<'_>,
        now_s: u32,
        read: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let region = lookup.region;
        if region.is_flush_due(now_s) {
            self.flush_now(lookup.hash, now_s);
        }
        let guard = self.grace_periods.begin_read();
        guard.miss();
        let copy;
        // `read` is called in one place only, so that the compiler inlines it.
        let item = if region.shared {
            copy = CopiedItem::of(lookup, now_s)?;
            copy.item()
        } else {
            let Some((number, slot, raw)) = find(lookup) else {
                if region.may_have_flushed(lookup.hash) {
                    drop(guard);
                    self.drop_expired(lookup.key, now_s);
                }
                return None;
            };
            if raw.expired(now_s) {
                drop(guard);
                self.drop_expired(lookup.key, now_s);
                return None;
            }
            region.record_use(number, slot);
            if let Some(classes) = region.size_classes.get() {
                guard.hit_class(classes.of_item(raw).1);
            }
            // SAFETY: what a slot leads to is not overwritten while the guard lives.
            let value = unsafe { raw.value() };
            let item = raw.item_with(slot, region.implied_cas(slot.offset()), value);
            raw.set_accessed(now_s);
            item
        };
        guard.hit();
        Some(read(&item))
    }

    #[cold]
    fn flush_now(&self, hash: u64, now_s: u32) {
        drop(self.writer(hash, now_s));
    }

    /// Remove an item that has expired or was flushed, unless it was stored again meanwhile.
    #[cold]
    fn drop_expired(&self, key: &[u8], now_s: u32) {
        drop(self.entry(key, now_s));
    }

    /// Read an item and give it a new exptime. This locks the item's region.
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
            entry.count(|counters| counters.touch_misses += 1);
            return None;
        }
        entry.count(|counters| counters.touch_hits += 1);
        entry.set_expiry(expires_s(exptime, now_s));
        entry.record_read();
        entry.item().map(|item| read(&item))
    }

    /// Store a value. `None` if there can be no room for it.
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

    /// Store a value if the present item has this cas number (0 is any). Returns the new item's cas number,
    /// or 0 if nothing was stored.
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
        entry.count_set(value.len(), flags);
        if let Some(refused) = preconditions::check(mode, expected_cas, &mut entry) {
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

    /// The length of an item's value, for callers that check it before they append.
    pub fn value_length(&self, key: &[u8], now_s: u32) -> Option<usize> {
        self.entry(key, now_s).item().map(|item| item.value.len())
    }

    pub fn delete(&self, key: &[u8], now_s: u32) -> bool {
        self.delete_if(key, 0, now_s) == Deletion::Deleted
    }

    /// Delete an item if it has this cas number; 0 is any.
    pub fn delete_if(&self, key: &[u8], cas: u64, now_s: u32) -> Deletion {
        let mut entry = self.entry(key, now_s);
        let Some(item) = entry.item() else {
            entry.count(|counters| counters.delete_misses += 1);
            return Deletion::NotFound;
        };
        if cas != 0 && item.cas != cas {
            return Deletion::Exists;
        }
        entry.count(|counters| counters.delete_hits += 1);
        entry.remove();
        Deletion::Deleted
    }

    /// Add to a number (it wraps at 2⁶⁴) or subtract from it (it stops at 0).
    pub fn arithmetic(&self, key: &[u8], delta: u64, increment: bool, now_s: u32) -> Arithmetic {
        let mut entry = self.entry(key, now_s);
        let cas = entry.fresh_cas();
        entry.arithmetic(delta, increment, 0, cas)
    }

    pub fn touch(&self, key: &[u8], exptime: i64, now_s: u32) -> bool {
        self.get_and_touch(key, exptime, now_s, |_| ()).is_some()
    }

    /// The entry of a key, to read and change its item in one atomic step. Its region is locked until the
    /// entry is dropped.
    pub fn entry<'a>(&'a self, key: &'a [u8], now_s: u32) -> Entry<'a> {
        let hash = hash::of(key);
        Entry::new(self.writer(hash, now_s), hash, key)
    }

    /// Drop what was stored before an instant: now if the delay is 0 or negative. memcached flushes at the beginning
    /// of the last second of a delay: after a delay of 1, at once.
    pub fn flush(&self, delay: i64, now_s: u32) {
        let at_s = if delay <= 0 { now_s } else { expires_s(delay, now_s) - 1 };
        self.writers(now_s).for_each(|mut writer| writer.flush(at_s));
    }

    #[inline]
    pub(crate) fn region(&self, hash: u64) -> &Region {
        // These bits are neither the buckets' nor the tag's; a product is faster than a remainder.
        let bits = (hash >> 32 & 0xffff) as usize;
        &self.regions[(bits * self.regions.len()) >> 16]
    }

    pub(crate) fn writer(&self, hash: u64, now_s: u32) -> Writer<'_> {
        Writer::new(self.region(hash), &self.grace_periods, now_s)
    }

    pub(crate) fn writers(&self, now_s: u32) -> impl Iterator<Item = Writer<'_>> {
        self.regions.iter().map(move |region| Writer::new(region, &self.grace_periods, now_s))
    }
}
