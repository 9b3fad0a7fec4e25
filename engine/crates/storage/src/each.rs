//! A look at all items, for those who list them.

use crate::item::Item;
use crate::region::{OWN, Region};
use crate::store::Store;

impl Store {
    /// Show the living items, in no order and without using them, until `read` has enough. The
    /// region of the item is locked meanwhile: `read` must not call the store.
    pub fn each(&self, now_s: u32, mut read: impl FnMut(&[u8], &Item<'_>) -> bool) {
        for writer in self.writers(now_s) {
            if !show(writer.region, now_s, &mut read) {
                return;
            }
        }
    }
}

/// The items of a region whose lock the caller holds; false when `read` has enough.
fn show(region: &Region, now_s: u32, read: &mut impl FnMut(&[u8], &Item<'_>) -> bool) -> bool {
    let buckets = 0..region.head().buckets.load(OWN) as usize;
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
}
