//! Changes of the hash table: cuckoo hashing with two buckets of seven slots, and linear hashing to grow.
//!
//! Each hash has two buckets, and an item goes to the emptier one, so that nearly all slots are used
//! before both are full. Then an item of a full bucket is displaced to its other bucket, and if that is
//! full, one of that bucket before it. Only then does a bucket get an overflow bucket. A table that grows
//! splits one bucket at a time, and no call splits more than two.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::items::slot::Slot;
use crate::memory::atomics::{LOCKED, SHARED, add};
use crate::memory::layout::{BUCKET_BYTES, BUCKET_SLOTS};
use crate::region::Region;
use crate::region::writer::Writer;
use crate::table::hash;

/// A table grows when a higher percentage of its slots is used.
const LOAD_PERCENT: u64 = 90;
/// How many items are displaced for one item at most.
const DISPLACEMENT_DEPTH: usize = 2;
/// With a higher percentage of slots used, no item is displaced: it would hardly ever help.
const CROWDED_PERCENT: u64 = 96;

impl Region {
    /// Begin with an empty table. No other thread may use the region yet.
    pub fn initialize_table(&self) {
        self.head().buckets.store(self.layout.buckets as u64, SHARED);
    }

    fn overflow_of(&self, bucket: usize) -> &AtomicU64 {
        &self.bucket(bucket)[BUCKET_SLOTS]
    }

    /// The numbers of all slots of a bucket and of its overflow buckets.
    pub fn chain(&self, bucket: usize) -> impl Iterator<Item = usize> {
        let follow = |bucket: &usize| Some(self.overflow_of(*bucket).load(SHARED) as usize);
        let buckets = std::iter::successors(Some(bucket), move |bucket| {
            follow(bucket).filter(|next| *next != 0)
        });
        buckets.flat_map(|bucket| bucket * 8..bucket * 8 + BUCKET_SLOTS)
    }

    /// How many buckets take half of the memory.
    fn half_of_limit(&self) -> usize {
        self.limit.load(SHARED) / 2 / BUCKET_BYTES
    }

    fn bump_table_version(&self) {
        self.head().table_version.fetch_add(1, SHARED);
    }

    /// The hash of a slot's item. The caller holds the lock.
    pub fn hash_of(&self, slot: Slot) -> u64 {
        // SAFETY: a live slot leads to a complete item, which only the holder of the lock changes.
        hash::of(unsafe { self.raw_item(slot).key() })
    }

    /// The bucket of an item that is in bucket `from` now, once there are `buckets`.
    fn bucket_after_split(&self, hash: u64, from: usize, before: u64, buckets: u64) -> usize {
        let (one, two) = self.buckets_of(hash, buckets);
        if self.buckets_of(hash, before).0 == from { one } else { two }
    }
}

impl Writer<'_> {
    /// The slot of the item at an offset, if the table has it.
    pub fn slot_at_offset(&self, hash: u64, offset: usize) -> Option<(usize, Slot)> {
        self.region.search(hash, |slot| slot.offset() == offset)
    }

    /// Whether an item with this hash was evicted lately. Removes its ghost.
    pub fn take_ghost(&self, hash: u64) -> bool {
        let (one, two) = self.region.buckets_of(hash, self.region.head().buckets.load(LOCKED));
        for bucket in [one, two] {
            for word in &self.region.bucket(bucket)[..BUCKET_SLOTS] {
                let slot = Slot(word.load(LOCKED));
                if slot.is_ghost() && slot.has_tag(crate::items::slot::tag(hash)) {
                    word.store(0, SHARED);
                    return true;
                }
            }
        }
        false
    }

    /// Insert a slot: its number, or the number of the slot whose item must be evicted first.
    pub fn insert_slot(&self, hash: u64, slot: Slot) -> Result<usize, usize> {
        let region = self.region;
        let buckets = region.head().buckets.load(LOCKED);
        let (one, two) = region.buckets_of(hash, buckets);
        let crowded = buckets * BUCKET_SLOTS as u64 * CROWDED_PERCENT / 100;
        let depth = if region.head().items.load(LOCKED) > crowded { 0 } else { DISPLACEMENT_DEPTH };
        if depth > 0 {
            [one, two].into_iter().for_each(|bucket| self.drain_overflow(bucket));
        }
        let live = |bucket: usize| {
            let slots = &region.bucket(bucket)[..BUCKET_SLOTS];
            slots.iter().filter(|word| Slot(word.load(LOCKED)).is_live()).count()
        };
        let bucket = if live(two) < live(one) { two } else { one };
        let inserted = self.put_in_bucket(bucket, true, slot);
        let inserted = inserted.or_else(|| {
            let freed = self.displace(one, depth).or_else(|| self.displace(two, depth))?;
            region.slot(freed).store(slot.0, SHARED);
            Some(freed)
        });
        inserted.or_else(|| self.put_in_bucket(one, false, slot)).ok_or_else(|| {
            let least = region.chain(one).min_by_key(|number| region.load_slot(*number).uses());
            least.expect("a bucket has slots")
        })
    }

    /// Move an item of a full bucket to its other bucket, and return the slot that is free now. If that
    /// bucket is full, an item of it is displaced first; `depth` is how many items may be displaced.
    fn displace(&self, bucket: usize, depth: usize) -> Option<usize> {
        let region = self.region;
        let numbers = || bucket * 8..bucket * 8 + BUCKET_SLOTS;
        let home = |number: usize| self.other_bucket(region.load_slot(number), bucket);
        for further in 0..depth {
            let buckets_of = numbers().map(|number| (number, home(number)));
            for (number, other) in buckets_of.filter(|(_, other)| *other != bucket) {
                let free = match further {
                    0 => self.free_slot(other),
                    _ => self.displace(other, further),
                };
                if let Some(free) = free {
                    region.slot(free).store(region.load_slot(number).0, SHARED);
                    region.bump_table_version();
                    return Some(number);
                }
            }
        }
        None
    }

    /// A slot without an item, in the bucket itself.
    fn free_slot(&self, bucket: usize) -> Option<usize> {
        self.first_free(|| bucket * 8..bucket * 8 + BUCKET_SLOTS)
    }

    /// The first empty slot, or else the first ghost.
    fn first_free<N: Iterator<Item = usize>>(&self, numbers: impl Fn() -> N) -> Option<usize> {
        let empty = numbers().find(|number| self.region.load_slot(*number) == Slot::EMPTY);
        empty.or_else(|| numbers().find(|number| self.region.load_slot(*number).is_vacant()))
    }

    /// The other bucket of an item; it may be the same.
    fn other_bucket(&self, slot: Slot, bucket: usize) -> usize {
        let region = self.region;
        let (one, two) =
            region.buckets_of(region.hash_of(slot), region.head().buckets.load(LOCKED));
        if one == bucket { two } else { one }
    }

    /// Put a slot into a bucket, or into its overflow buckets if that is allowed.
    fn put_in_bucket(&self, bucket: usize, no_overflow: bool, slot: Slot) -> Option<usize> {
        let region = self.region;
        let most = if no_overflow { BUCKET_SLOTS } else { usize::MAX };
        let number = match self.first_free(|| region.chain(bucket).take(most)) {
            Some(number) => number,
            None if no_overflow => return None,
            None => self.add_overflow_bucket(bucket)?,
        };
        region.slot(number).store(slot.0, SHARED);
        Some(number)
    }

    /// Append an empty overflow bucket to a chain: its first slot, or `None` if there is no bucket left.
    fn add_overflow_bucket(&self, bucket: usize) -> Option<usize> {
        let region = self.region;
        let head = region.head();
        let fresh = match head.overflow_free.load(LOCKED) as usize {
            0 => {
                let used = head.overflow_used.load(LOCKED) as usize;
                if used >= region.layout.overflow_max.min(region.half_of_limit()) {
                    return None;
                }
                add(&head.overflow_used, 1);
                region.layout.buckets_max + used
            }
            free => {
                head.overflow_free.store(region.overflow_of(free).load(LOCKED), LOCKED);
                free
            }
        };
        region.bucket(fresh).iter().for_each(|word| word.store(0, SHARED));
        let last = region.chain(bucket).last().expect("a bucket has slots") / 8;
        region.overflow_of(last).store(fresh as u64, SHARED);
        Some(fresh * 8)
    }

    /// Grow the table by at most two buckets, if it is full enough and may grow. Two are enough to keep
    /// ahead of the items.
    pub fn grow_table(&self) {
        let head = self.region.head();
        let most = self.region.layout.buckets_max.min(self.region.half_of_limit()) as u64;
        for _ in 0..2 {
            let buckets = head.buckets.load(LOCKED);
            let full = buckets * BUCKET_SLOTS as u64 * LOAD_PERCENT / 100;
            if head.items.load(LOCKED) < full || buckets >= most {
                return;
            }
            self.split(buckets);
        }
    }

    /// Grow the table to this many buckets, or as far as it may grow.
    pub fn grow_table_to(&self, buckets: u64) {
        let most = self.region.layout.buckets_max.min(self.region.half_of_limit()) as u64;
        let present = || self.region.head().buckets.load(LOCKED);
        while present() < buckets.min(most) {
            let before = present();
            self.split(before);
            if present() == before {
                return;
            }
        }
    }

    /// Add a bucket and move the items that belong there. Readers find such an item in both buckets, then
    /// only in the new one; a reader that looked in between sees another table version.
    fn split(&self, buckets: u64) {
        let region = self.region;
        let fresh = buckets as usize;
        let old = fresh - ((buckets + 1).next_power_of_two() as usize >> 1);
        region.bucket(fresh).iter().for_each(|word| word.store(0, SHARED));
        let moves = |number: usize| {
            let slot = region.load_slot(number);
            let home =
                || region.bucket_after_split(region.hash_of(slot), old, buckets, buckets + 1);
            slot.is_live() && home() == fresh
        };
        let mut all_moved = true;
        for number in region.chain(old).filter(|number| moves(*number)) {
            all_moved &= self.put_in_bucket(fresh, false, region.load_slot(number)).is_some();
        }
        if !all_moved {
            // There is no overflow bucket left: the table does not grow.
            region.bucket(fresh).iter().for_each(|word| word.store(0, SHARED));
            return;
        }
        region.head().buckets.store(buckets + 1, SHARED);
        region.bump_table_version();
        for number in region.chain(old) {
            if region.load_slot(number).is_vacant() || moves(number) {
                region.slot(number).store(0, SHARED);
            }
        }
        self.drain_overflow(old);
    }

    /// Move items from overflow buckets to free slots of the bucket or of their other bucket, and unlink
    /// overflow buckets that are empty.
    fn drain_overflow(&self, bucket: usize) {
        let region = self.region;
        if region.overflow_of(bucket).load(LOCKED) == 0 {
            return;
        }
        for number in region.chain(bucket).skip(BUCKET_SLOTS) {
            let slot = region.load_slot(number);
            let relocated = slot.is_live()
                && (self.put_in_bucket(bucket, true, slot).is_some()
                    || self.put_in_bucket(self.other_bucket(slot, bucket), true, slot).is_some());
            if relocated {
                region.bump_table_version();
                region.slot(number).store(0, SHARED);
            }
        }
        let mut last = bucket;
        while let next @ 1.. = region.overflow_of(last).load(LOCKED) as usize {
            let words = &region.bucket(next)[..BUCKET_SLOTS];
            if words.iter().any(|word| Slot(word.load(LOCKED)).is_live()) {
                last = next;
                continue;
            }
            region.overflow_of(last).store(region.overflow_of(next).load(LOCKED), SHARED);
            region.bump_table_version();
            region.overflow_of(next).store(region.head().overflow_free.load(LOCKED), SHARED);
            region.head().overflow_free.store(next as u64, LOCKED);
        }
    }

    /// Remove all items and ghosts. What a flush removes can be recognized as long as nothing takes its place, but for
    /// what is in overflow buckets, or in a store that processes share.
    pub fn clear_table(&self) {
        let region = self.region;
        let head = region.head();
        let clear = |bucket: usize| {
            region.bucket(bucket).iter().for_each(|word| word.store(0, Ordering::Release));
        };
        let flush = |bucket: usize| {
            for word in &region.bucket(bucket)[..BUCKET_SLOTS] {
                word.store(Slot(word.load(LOCKED)).to_flushed().0, Ordering::Release);
            }
            region.overflow_of(bucket).store(0, Ordering::Release);
        };
        let buckets = 0..head.buckets.load(LOCKED) as usize;
        if region.shared {
            buckets.for_each(clear)
        } else {
            buckets.for_each(flush)
        }
        let first = region.layout.buckets_max;
        (first..first + head.overflow_used.load(LOCKED) as usize).for_each(clear);
        head.overflow_used.store(0, LOCKED);
        head.overflow_free.store(0, LOCKED);
        region.bump_table_version();
    }
}
