//! A look at all items, for those who list them.

use std::ops::Range;

use crate::item::Item;
use crate::region::{OWN, Region};
use crate::store::Store;
use crate::writer::Writer;

/// Buckets of one region that are a part of the store: nearly two thousand items at most, for whose time it is locked.
const PART_BUCKETS: usize = 256;

impl Store {
    /// Show the living items of a part of the store, 0 the first, without using them; the next part,
    /// `None` behind the last. What is stored or moved between two parts may be shown twice, or not at
    /// all. The region is locked meanwhile: `read` must not call the store.
    pub fn each_in(
        &self,
        part: usize,
        now_s: u32,
        mut read: impl FnMut(&[u8], &Item<'_>),
    ) -> Option<usize> {
        let regions = &self.regions;
        let writer = Writer::new(&regions[part % regions.len()], &self.grace, now_s);
        let first = part / regions.len() * PART_BUCKETS;
        let part_of = first..(first + PART_BUCKETS).min(buckets(writer.region));
        show(writer.region, part_of, now_s, &mut |key, item| {
            read(key, item);
            true
        });
        let most = regions.iter().map(buckets).max().unwrap_or(0);
        let next = part + 1;
        (next / regions.len() * PART_BUCKETS < most).then_some(next)
    }

    /// Show the living items, in no order and without using them, until `read` has enough. The
    /// region of the item is locked meanwhile: `read` must not call the store.
    pub fn each(&self, now_s: u32, mut read: impl FnMut(&[u8], &Item<'_>) -> bool) {
        for writer in self.writers(now_s) {
            if !show(writer.region, 0..buckets(writer.region), now_s, &mut read) {
                return;
            }
        }
    }
}

fn buckets(region: &Region) -> usize {
    region.head().buckets.load(OWN) as usize
}

/// The items in these buckets of a region whose lock the caller holds; false when `read` has enough.
fn show(
    region: &Region,
    buckets: Range<usize>,
    now_s: u32,
    read: &mut impl FnMut(&[u8], &Item<'_>) -> bool,
) -> bool {
    for number in buckets.flat_map(|bucket| region.chain(bucket)) {
        let slot = region.load(number);
        if !slot.is_live() || region.placed(slot).expired(now_s) {
            continue;
        }
        let placed = region.placed(slot);
        // SAFETY: a living slot leads to a whole item, which only the holder of the lock changes.
        let (key, value) = unsafe { (placed.key(), placed.value()) };
        if !read(key, &placed.describe(slot, region.implied_cas(slot.offset()), value)) {
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
    fn each_living_item_is_shown_once() {
        let store = Store::new(64 << 20);
        for n in 0..100 {
            store.store(Mode::Set, format!("{n}").as_bytes(), 7, n % 2 * 5, b"x", NOW);
        }
        let mut keys = Vec::new();
        store.each(NOW + 5, |key, item| {
            assert_eq!((item.value, item.flags, item.fetched), (&b"x"[..], 7, false));
            keys.push(key.to_vec());
            keys.len() < 40
        });
        assert_eq!(keys.len(), 40, "enough");
        keys.clear();
        store.each(NOW + 5, |key, _| {
            keys.push(key.to_vec());
            true
        });
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 50, "half of them have expired");
    }

    #[test]
    fn parts_are_the_whole() {
        let store = Store::new(64 << 20);
        for n in 0..100_000 {
            store.store(Mode::Set, format!("{n}").as_bytes(), 0, 0, b"x", NOW);
        }
        let (mut keys, mut part, mut parts) = (Vec::new(), Some(0), 0);
        while let Some(number) = part {
            part = store.each_in(number, NOW, |key, _| keys.push(key.to_vec()));
            parts += 1;
        }
        assert_eq!(keys.len(), 100_000);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 100_000, "each once");
        assert!(parts > 40, "{parts} parts");
    }
}
