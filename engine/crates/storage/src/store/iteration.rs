//! Iteration over all items, for commands that list them.

use std::ops::Range;

use crate::items::item::Item;
use crate::memory::atomics::LOCKED;
use crate::region::Region;
use crate::region::writer::Writer;
use crate::store::Store;

/// A part is this many buckets of one region: at most about two thousand items. Its region is locked for as
/// long as that takes.
const PART_BUCKETS: usize = 256;

impl Store {
    /// Call `read` for the live items of one part of the store, which is not recorded as a use. Part 0 is
    /// the first; returns the next, or `None` after the last. Items that are stored or moved between two
    /// calls may appear twice or not at all. The region is locked: `read` must not call the store.
    pub fn for_each_in_part(
        &self,
        part: usize,
        now_s: u32,
        mut read: impl FnMut(&[u8], &Item<'_>),
    ) -> Option<usize> {
        let regions = &self.regions;
        let writer = Writer::new(&regions[part % regions.len()], &self.grace_periods, now_s);
        let first = part / regions.len() * PART_BUCKETS;
        let in_part = first..(first + PART_BUCKETS).min(buckets(writer.region));
        read_buckets(writer.region, in_part, now_s, &mut |key, item| {
            read(key, item);
            true
        });
        let most = regions.iter().map(buckets).max().unwrap_or(0);
        let next = part + 1;
        (next / regions.len() * PART_BUCKETS < most).then_some(next)
    }

    /// Call `read` for the live items, in any order, until it returns false. That is not recorded as a use.
    /// The item's region is locked: `read` must not call the store.
    pub fn for_each(&self, now_s: u32, mut read: impl FnMut(&[u8], &Item<'_>) -> bool) {
        for writer in self.writers(now_s) {
            if !read_buckets(writer.region, 0..buckets(writer.region), now_s, &mut read) {
                return;
            }
        }
    }
}

fn buckets(region: &Region) -> usize {
    region.head().buckets.load(LOCKED) as usize
}

/// Call `read` for the live items of these buckets; false once `read` returned false. The caller holds the
/// region's lock.
fn read_buckets(
    region: &Region,
    buckets: Range<usize>,
    now_s: u32,
    read: &mut impl FnMut(&[u8], &Item<'_>) -> bool,
) -> bool {
    for number in buckets.flat_map(|bucket| region.chain(bucket)) {
        let slot = region.load_slot(number);
        if !slot.is_live() || region.raw_item(slot).expired(now_s) {
            continue;
        }
        let raw = region.raw_item(slot);
        // SAFETY: a live slot leads to a complete item, which only the holder of the lock changes.
        let (key, value) = unsafe { (raw.key(), raw.value()) };
        if !read(key, &raw.item_with(slot, region.implied_cas(slot.offset()), value)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::{Mode, Store};

    const NOW: u32 = 1_700_000_000;

    #[test]
    fn for_each_reads_each_live_item_once() {
        let store = Store::new(64 << 20);
        for n in 0..100 {
            store.store(Mode::Set, format!("{n}").as_bytes(), 7, n % 2 * 5, b"x", NOW);
        }
        let mut keys = Vec::new();
        store.for_each(NOW + 5, |key, item| {
            assert_eq!((item.value, item.flags, item.fetched), (&b"x"[..], 7, false));
            keys.push(key.to_vec());
            keys.len() < 40
        });
        assert_eq!(keys.len(), 40, "enough");
        keys.clear();
        store.for_each(NOW + 5, |key, _| {
            keys.push(key.to_vec());
            true
        });
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 50, "half of them have expired");
    }

    #[test]
    fn all_parts_together_have_each_item_once() {
        let store = Store::new(64 << 20);
        for n in 0..100_000 {
            store.store(Mode::Set, format!("{n}").as_bytes(), 0, 0, b"x", NOW);
        }
        let (mut keys, mut part, mut parts) = (Vec::new(), Some(0), 0);
        while let Some(number) = part {
            part = store.for_each_in_part(number, NOW, |key, _| keys.push(key.to_vec()));
            parts += 1;
        }
        assert_eq!(keys.len(), 100_000);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 100_000, "each once");
        assert!(parts > 40, "{parts} parts");
    }
}
