//! A key that is looked up, with what is known before its turn comes.
//!
//! A server that has several requests in its input prefetches what their reads will need into the
//! processor's caches: first the buckets of the table (`Store::prefetch`), then the items
//! (`Lookup::prefetch_item`). Memory then arrives while other requests are carried out.

use crate::items::item::RawItem;
use crate::items::slot::{Slot, tag};
use crate::region::Region;

/// A key, its hash, and where its item was seen.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) region: &'a Region,
    /// The number and the word of its most likely slot, when the item was prefetched.
    likely_slot: Option<(usize, Slot)>,
    /// Its two buckets, when they were prefetched.
    buckets: (usize, usize),
}

/// The number of a slot, the slot and its item.
pub(crate) type Found = (usize, Slot, RawItem);

impl<'a> Lookup<'a> {
    #[inline]
    pub(crate) fn new(key: &'a [u8], hash: u64, region: &'a Region) -> Lookup<'a> {
        Lookup { key, hash, region, likely_slot: None, buckets: (0, 0) }
    }

    /// Prefetch its buckets of the table.
    #[inline]
    pub(crate) fn prefetch_table(&mut self) {
        self.buckets = self.region.prefetch_buckets(self.hash);
    }

    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Prefetch its item, which is most likely the one that its buckets lead to now.
    #[inline]
    pub fn prefetch_item(&mut self) {
        self.likely_slot = self.region.prefetch_item(self.buckets, tag(self.hash));
    }

    /// Find its item. The caller holds a `ReadGuard`, so that the item is not overwritten.
    #[inline]
    pub(crate) fn find(&self) -> Option<Found> {
        let region = self.region;
        if let Some((number, seen)) = self.likely_slot {
            let slot = region.load_slot(number);
            if slot.same_location(seen) {
                let raw = region.raw_item(slot);
                // SAFETY: the slot leads to an item, as `seen` did, and the caller holds a guard.
                if unsafe { raw.key() } == self.key {
                    return Some((number, slot, raw));
                }
            }
        }
        self.search_out_of_line()
    }

    /// Not inlined, so that the code for a known slot is short.
    #[inline(never)]
    fn search_out_of_line(&self) -> Option<Found> {
        self.search()
    }

    /// Find the item of a key that was not prefetched.
    #[inline]
    pub(crate) fn search(&self) -> Option<Found> {
        // SAFETY: a search shows only slots that lead to an item, and the caller holds a guard.
        let same = |slot: Slot| unsafe { self.region.raw_item(slot).key() } == self.key;
        let (number, slot) = self.region.search(self.hash, same)?;
        Some((number, slot, self.region.raw_item(slot)))
    }
}
