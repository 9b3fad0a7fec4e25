//! A key that is asked for, and what is known of it before its turn comes. Those who know their next
//! keys while they still work on others have what a read looks at brought into the processor's
//! caches: first the parts of the table that say where the item is, later the item.

use crate::hash;
use crate::item::Placed;
use crate::region::Region;
use crate::slot::{Slot, tag};
use crate::store::Store;

#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) region: &'a Region,
    /// The slot it most likely has, as it was then.
    slot: Option<(usize, Slot)>,
    /// The buckets it may be in, when it was foreseen.
    homes: (usize, usize),
}

/// The number of a slot, the slot and its item.
pub(crate) type Found = (usize, Slot, Placed);

impl<'a> Wanted<'a> {
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// It will be asked for soon: what is there now says where its item is, which is fetched.
    #[inline]
    pub fn warm(&mut self) {
        self.slot = self.region.warm_item(self.homes, tag(self.hash));
    }

    /// Where it is. A visit must last, so that what a slot leads to is not written to again.
    #[inline]
    pub(crate) fn find(&self) -> Option<Found> {
        let region = self.region;
        if let Some((number, seen)) = self.slot {
            let slot = region.load(number);
            if slot.leads_as(seen) {
                let placed = region.placed(slot);
                // SAFETY: the slot leads to an item, as `seen` did, and a visit lasts.
                if unsafe { placed.key() } == self.key {
                    return Some((number, slot, placed));
                }
            }
        }
        self.search_apart()
    }

    /// So that where the slot is known the search is not in the way.
    #[inline(never)]
    fn search_apart(&self) -> Option<Found> {
        self.search()
    }

    /// The same of a key of which nothing is known.
    #[inline]
    pub(crate) fn search(&self) -> Option<Found> {
        // SAFETY: a search shows what leads to an item, and a visit lasts.
        let same = |slot: Slot| unsafe { self.region.placed(slot).key() } == self.key;
        let (number, slot) = self.region.search(self.hash, same)?;
        Some((number, slot, self.region.placed(slot)))
    }
}

impl Store {
    /// A key, and what is known of it already, if that is about these very bytes.
    #[inline]
    pub fn want<'a>(&'a self, key: &'a [u8], known: Option<Wanted<'a>>) -> Wanted<'a> {
        match known {
            Some(wanted) if std::ptr::eq(wanted.key, key) => wanted,
            _ => {
                let hash = hash::of(key);
                Wanted { key, hash, region: self.region(hash), slot: None, homes: (0, 0) }
            }
        }
    }

    /// A key that will be asked for: its parts of the table are fetched.
    #[inline]
    pub fn foresee<'a>(&'a self, key: &'a [u8]) -> Wanted<'a> {
        let mut wanted = self.want(key, None);
        wanted.homes = wanted.region.warm_slots(wanted.hash);
        wanted
    }
}
