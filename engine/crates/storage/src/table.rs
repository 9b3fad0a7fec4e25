//! The hash table as its writer changes it. Each hash has two buckets and goes into the emptier, so
//! that nearly all slots are in use before both are full; then one of the items there is moved to
//! its other bucket, and one of that bucket's before it if need be, before a bucket overflows. A
//! table that grows splits one bucket at a time, so that no call pays for more than two.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash;
use crate::layout::BUCKET_SLOTS;
use crate::region::{OWN, Region, SEEN, add};
use crate::slot::Slot;
use crate::writer::Writer;

/// A table grows when more of its slots than this are in use, in percent.
const LOAD_PERCENT: u64 = 90;
/// Items that make room for another one: one that moves, and one that makes room for that.
const REACH: usize = 2;
/// Beyond this a table that cannot grow is too full for that to help, in percent.
const CROWDED_PERCENT: u64 = 96;

impl Region {
    /// Begin with an empty table; nobody may be looking.
    pub fn make_table(&self) {
        self.head().buckets.store(self.layout.buckets as u64, SEEN);
    }

    fn overflow(&self, bucket: usize) -> &AtomicU64 {
        &self.bucket(bucket)[BUCKET_SLOTS]
    }

    /// The numbers of all slots of a bucket and of those that it overflows into.
    pub fn chain(&self, bucket: usize) -> impl Iterator<Item = usize> {
        let follow = |bucket: &usize| Some(self.overflow(*bucket).load(SEEN) as usize);
        let buckets = std::iter::successors(Some(bucket), move |bucket| {
            follow(bucket).filter(|next| *next != 0)
        });
        buckets.flat_map(|bucket| bucket * 8..bucket * 8 + BUCKET_SLOTS)
    }

    fn reshaped(&self) {
        self.head().shape.fetch_add(1, SEEN);
    }

    /// The hash of the item that a slot leads to. The lock is held, so that it stays.
    pub fn hash_of(&self, slot: Slot) -> u64 {
        // SAFETY: a live slot leads to a whole item, and only the holder of the lock writes there.
        hash::of(unsafe { self.placed(slot).key() })
    }

    /// Where an item of bucket `from` belongs when there are `buckets`.
    fn home_from(&self, hash: u64, from: usize, before: u64, buckets: u64) -> usize {
        let (one, two) = self.homes(hash, buckets);
        if self.homes(hash, before).0 == from { one } else { two }
    }
}

impl Writer<'_> {
    /// The slot of the item that begins at an offset, if the table leads there.
    pub fn locate(&self, hash: u64, offset: usize) -> Option<(usize, Slot)> {
        self.region.search(hash, |slot| slot.offset() == offset)
    }

    /// Whether an item of this hash was evicted lately, unused; forgets it.
    pub fn take_ghost(&self, hash: u64) -> bool {
        let (one, two) = self.region.homes(hash, self.region.head().buckets.load(OWN));
        for bucket in [one, two] {
            for word in &self.region.bucket(bucket)[..BUCKET_SLOTS] {
                let slot = Slot(word.load(OWN));
                if slot.is_ghost() && slot.has_tag(crate::slot::tag(hash)) {
                    word.store(0, SEEN);
                    return true;
                }
            }
        }
        false
    }

    /// Put a slot where its hash belongs: its number, or that of the slot that must go first.
    pub fn insert_slot(&self, hash: u64, slot: Slot) -> Result<usize, usize> {
        let region = self.region;
        let buckets = region.head().buckets.load(OWN);
        let (one, two) = region.homes(hash, buckets);
        let crowded = buckets * BUCKET_SLOTS as u64 * CROWDED_PERCENT / 100;
        let reach = if region.head().items.load(OWN) > crowded { 0 } else { REACH };
        if reach > 0 {
            [one, two].into_iter().for_each(|bucket| self.shorten(bucket));
        }
        let live = |bucket: usize| {
            let slots = &region.bucket(bucket)[..BUCKET_SLOTS];
            slots.iter().filter(|word| Slot(word.load(OWN)).is_live()).count()
        };
        let bucket = if live(two) < live(one) { two } else { one };
        let here = self.place(bucket, true, slot);
        let here = here.or_else(|| {
            let freed = self.displace(one, reach).or_else(|| self.displace(two, reach))?;
            region.slot(freed).store(slot.0, SEEN);
            Some(freed)
        });
        here.or_else(|| self.place(one, false, slot)).ok_or_else(|| {
            let least = region.chain(one).min_by_key(|number| region.load(*number).uses());
            least.expect("a bucket has slots")
        })
    }

    /// Move an item of a full bucket to its other one, where room may have to be made in the same way
    /// first, so many buckets away at most: the slot that is free now.
    fn displace(&self, bucket: usize, reach: usize) -> Option<usize> {
        let region = self.region;
        let numbers = || bucket * 8..bucket * 8 + BUCKET_SLOTS;
        let home = |number: usize| self.other_home(region.load(number), bucket);
        for further in 0..reach {
            let homes = numbers().map(|number| (number, home(number)));
            for (number, other) in homes.filter(|(_, other)| *other != bucket) {
                let free = match further {
                    0 => self.free_slot(other),
                    _ => self.displace(other, further),
                };
                if let Some(free) = free {
                    region.slot(free).store(region.load(number).0, SEEN);
                    region.reshaped();
                    return Some(number);
                }
            }
        }
        None
    }

    /// A slot of a bucket itself in which no item is.
    fn free_slot(&self, bucket: usize) -> Option<usize> {
        self.free_among(|| bucket * 8..bucket * 8 + BUCKET_SLOTS)
    }

    /// The first slot in which no item is; one that keeps no ghost, if there is.
    fn free_among<N: Iterator<Item = usize>>(&self, numbers: impl Fn() -> N) -> Option<usize> {
        let empty = numbers().find(|number| self.region.load(*number) == Slot::EMPTY);
        empty.or_else(|| numbers().find(|number| self.region.load(*number).is_ghost()))
    }

    /// The other of the two buckets that an item may be in; perhaps the same.
    fn other_home(&self, slot: Slot, bucket: usize) -> usize {
        let region = self.region;
        let (one, two) = region.homes(region.hash_of(slot), region.head().buckets.load(OWN));
        if one == bucket { two } else { one }
    }

    /// Put a slot into a bucket, or behind it where that is allowed.
    fn place(&self, bucket: usize, here_only: bool, slot: Slot) -> Option<usize> {
        let region = self.region;
        let most = if here_only { BUCKET_SLOTS } else { usize::MAX };
        let number = match self.free_among(|| region.chain(bucket).take(most)) {
            Some(number) => number,
            None if here_only => return None,
            None => self.lengthen(bucket)?,
        };
        region.slot(number).store(slot.0, SEEN);
        Some(number)
    }

    /// Hang an empty bucket behind a chain: its first slot.
    fn lengthen(&self, bucket: usize) -> Option<usize> {
        let region = self.region;
        let head = region.head();
        let fresh = match head.overflow_free.load(OWN) as usize {
            0 => {
                let used = head.overflow_used.load(OWN) as usize;
                if used == region.layout.overflow_most {
                    return None;
                }
                add(&head.overflow_used, 1);
                region.layout.buckets_most + used
            }
            free => {
                head.overflow_free.store(region.overflow(free).load(OWN), OWN);
                free
            }
        };
        region.bucket(fresh).iter().for_each(|word| word.store(0, SEEN));
        let last = region.chain(bucket).last().expect("a bucket has slots") / 8;
        region.overflow(last).store(fresh as u64, SEEN);
        Some(fresh * 8)
    }

    /// Make room for one item more, where the table may grow: two buckets at most, so that it
    /// keeps ahead of what is stored.
    pub fn grow(&self) {
        let head = self.region.head();
        for _ in 0..2 {
            let buckets = head.buckets.load(OWN);
            let full = buckets * BUCKET_SLOTS as u64 * LOAD_PERCENT / 100;
            if head.items.load(OWN) < full || buckets as usize >= self.region.layout.buckets_most {
                return;
            }
            self.split(buckets);
        }
    }

    /// Add a bucket and move to it what belongs there. Readers find an item in both places, then
    /// only in the new one; `shape` tells those who looked in between.
    fn split(&self, buckets: u64) {
        let region = self.region;
        let fresh = buckets as usize;
        let old = fresh - ((buckets + 1).next_power_of_two() as usize >> 1);
        region.bucket(fresh).iter().for_each(|word| word.store(0, SEEN));
        let moves = |number: usize| {
            let slot = region.load(number);
            let home = || region.home_from(region.hash_of(slot), old, buckets, buckets + 1);
            slot.is_live() && home() == fresh
        };
        let mut all_moved = true;
        for number in region.chain(old).filter(|number| moves(*number)) {
            all_moved &= self.place(fresh, false, region.load(number)).is_some();
        }
        if !all_moved {
            // No overflow bucket is left: the table stays as large as it is.
            region.bucket(fresh).iter().for_each(|word| word.store(0, SEEN));
            return;
        }
        region.head().buckets.store(buckets + 1, SEEN);
        region.reshaped();
        for number in region.chain(old) {
            if region.load(number).is_ghost() || moves(number) {
                region.slot(number).store(0, SEEN);
            }
        }
        self.shorten(old);
    }

    /// Take items from behind a bucket into its free slots or those of their other bucket, and the
    /// emptied buckets away.
    fn shorten(&self, bucket: usize) {
        let region = self.region;
        if region.overflow(bucket).load(OWN) == 0 {
            return;
        }
        for number in region.chain(bucket).skip(BUCKET_SLOTS) {
            let slot = region.load(number);
            let moved = slot.is_live()
                && (self.place(bucket, true, slot).is_some()
                    || self.place(self.other_home(slot, bucket), true, slot).is_some());
            if moved {
                region.reshaped();
                region.slot(number).store(0, SEEN);
            }
        }
        let mut last = bucket;
        while let next @ 1.. = region.overflow(last).load(OWN) as usize {
            let words = &region.bucket(next)[..BUCKET_SLOTS];
            if words.iter().any(|word| Slot(word.load(OWN)).is_live()) {
                last = next;
                continue;
            }
            region.overflow(last).store(region.overflow(next).load(OWN), SEEN);
            region.reshaped();
            region.overflow(next).store(region.head().overflow_free.load(OWN), SEEN);
            region.head().overflow_free.store(next as u64, OWN);
        }
    }

    /// Forget everything.
    pub fn clear_table(&self) {
        let region = self.region;
        let head = region.head();
        let clear = |bucket: usize| {
            region.bucket(bucket).iter().for_each(|word| word.store(0, Ordering::Release));
        };
        (0..head.buckets.load(OWN) as usize).for_each(clear);
        let first = region.layout.buckets_most;
        (first..first + head.overflow_used.load(OWN) as usize).for_each(clear);
        head.overflow_used.store(0, OWN);
        head.overflow_free.store(0, OWN);
        region.reshaped();
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::BUCKET_SLOTS;
    use crate::region::OWN;
    use crate::{Mode, Store};

    const NOW: u32 = 1_700_000_000;
    const ITEMS: usize = 60_000;
    /// Words of the table that a store may change, whatever its size: those of two buckets that are
    /// split and of the two new ones, with what they overflow into, and the item's own.
    const WORDS_MOST: usize = 2 * 4 * (BUCKET_SLOTS + 1) + 8;

    fn words(store: &Store) -> Vec<u64> {
        let region = &store.regions[0];
        let head = region.head();
        let overflow = region.layout.buckets_most;
        let used = head.overflow_used.load(OWN) as usize;
        let buckets = (0..2 * ITEMS / BUCKET_SLOTS).chain(overflow..overflow + used + 4);
        buckets.flat_map(|bucket| region.bucket(bucket)).map(|word| word.load(OWN)).collect()
    }

    fn insert(store: &Store, n: usize) {
        store.store(Mode::Set, format!("key-{n}").as_bytes(), 0, 0, b"x", NOW);
    }

    #[test]
    fn growth_is_paid_for_in_small_parts() {
        let store = Store::new(16 << 20);
        let buckets = || store.regions[0].head().buckets.load(OWN);
        let first = buckets();
        let mut most = 0;
        for n in 0..ITEMS {
            let before = (n % 307 == 0).then(|| words(&store));
            let buckets_before = buckets();
            insert(&store, n);
            assert!(buckets() <= buckets_before + 2, "no call splits more than two buckets");
            if let Some(before) = before {
                let changed = before.iter().zip(words(&store)).filter(|(a, b)| **a != *b).count();
                most = most.max(changed);
            }
        }
        assert!(buckets() > 100 * first, "the table has grown: {} buckets", buckets());
        assert!((1..=WORDS_MOST).contains(&most), "{most} words were changed by one call");
        let table_bytes = store.usage(NOW).table_bytes as usize;
        assert!(table_bytes <= ITEMS * 12, "{table_bytes} bytes: hardly a bucket overflows");
    }
}
