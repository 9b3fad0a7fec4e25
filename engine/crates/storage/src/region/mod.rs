//! A region as its readers see it: where everything is, and how an item is found without a lock.

mod buckets;
mod class_counts;
mod evict;
pub mod expire;
mod flushed;
pub mod lookup;
pub mod optimistic_read;
mod reclaim_batch;
mod recovery;
pub mod robust_mutex;
pub mod segment_state;
mod segments;
pub mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

use crate::counters::Counters;
use crate::items::item::{Item, RawItem};
use crate::items::slot::{Slot, tag};
use crate::memory::atomics::{LOCKED, SHARED};
use crate::memory::layout::{BUCKET_SLOTS, Layout, RegionHead, SegmentMeta, StoreHead};
use crate::memory::mapping::Memory;
use crate::region::reclaim_batch::ReclaimBatch;
use crate::region::segment_state::state;
use crate::size_classes::{ClassUsage, SizeClasses};
use crate::table::tags::{Bucket, TagMatches};

/// How many cache lines of an item are prefetched: header, key and a small value.
const PREFETCH_LINES: usize = 3;

/// Is called with the key, the item, and the time in seconds since the epoch.
pub type EvictionObserver = Arc<dyn Fn(&[u8], &Item<'_>, u32) + Send + Sync>;

/// A region: a part of the store with a lock, a table and segments of its own.
pub struct Region {
    memory: Arc<Memory>,
    base: *mut u8,
    pub layout: Layout,
    /// Whether other processes map it too.
    pub shared: bool,
    /// How much memory it may use now.
    pub limit: AtomicUsize,
    /// How many segments the highest limit so far allows; those behind them were never used.
    pub segments: AtomicUsize,
    /// Whether items may be evicted. If not, there may be no room for a new one.
    pub evicts: AtomicBool,
    /// Whether there was a flush.
    pub was_flushed: AtomicBool,
    /// Items have cas numbers. If not, all are 0.
    pub has_cas: AtomicBool,
    /// The sizes by which items are counted; none unless a server asks for it.
    pub size_classes: OnceLock<Arc<SizeClasses>>,
    /// Is called with each item that is evicted.
    pub observer: OnceLock<EvictionObserver>,
    /// The state of this process. Its mutex is locked before the lock between processes.
    pub local: Mutex<Local>,
}

// SAFETY: behind `base` are atomics, and bytes of segments, which are written under the lock, before a
// slot leads to them (see `writer.rs`).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// The state of a region that each process has for itself.
#[derive(Default)]
pub struct Local {
    pub counters: Counters,
    /// The same for each class of sizes, if there are classes.
    pub by_class: Vec<ClassUsage>,
    pub reclaim_batch: ReclaimBatch,
    /// The first segments of items whose values are being written, once for each item.
    pub pins: Vec<u32>,
    /// Segments with a lower sequence number were filled before the last flush.
    pub flushed_until: u64,
}

impl Region {
    /// The region at an offset of the store's memory.
    pub fn new(memory: &Arc<Memory>, offset: usize, layout: Layout, shared: bool) -> Region {
        Region {
            base: memory.start().wrapping_add(offset),
            memory: Arc::clone(memory),
            layout,
            shared,
            limit: AtomicUsize::new(0),
            segments: AtomicUsize::new(0),
            evicts: AtomicBool::new(true),
            was_flushed: AtomicBool::new(false),
            has_cas: AtomicBool::new(true),
            size_classes: OnceLock::new(),
            observer: OnceLock::new(),
            local: Mutex::default(),
        }
    }

    /// Keeps the mapping alive for a pointer into it.
    pub fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    /// Set how much memory it may use.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, SHARED);
        self.segments.fetch_max((limit / self.layout.segment).min(self.layout.segments), SHARED);
    }

    /// The state that all regions share, at the beginning of the memory.
    pub fn store(&self) -> &StoreHead {
        // SAFETY: the mapping begins with the store's head, which is page-aligned and all atomics.
        unsafe { &*self.memory.start().cast::<StoreHead>() }
    }

    #[inline]
    pub fn head(&self) -> &RegionHead {
        // SAFETY: a region begins with its head, which is page-aligned and all atomics; zeros are valid.
        unsafe { &*self.base.cast::<RegionHead>() }
    }

    #[inline]
    pub fn segment_meta(&self, segment: u32) -> &SegmentMeta {
        debug_assert!((segment as usize) < self.layout.segments);
        // SAFETY: there are as many entries as segments, all atomics.
        unsafe {
            &*self.base.add(self.layout.segment_meta_at).cast::<SegmentMeta>().add(segment as usize)
        }
    }

    /// Whether an item of this segment may have expired. Without the lock this is a guess.
    pub fn may_have_expired(&self, segment: u32, now_s: u32) -> bool {
        let meta = self.segment_meta(segment);
        meta.earliest_expiry_s.load(LOCKED) <= now_s
            && matches!(meta.state.load(LOCKED), state::SMALL | state::MAIN)
    }

    /// The words of a bucket: its slots, then the index of its overflow bucket (0 for none).
    #[inline]
    pub fn bucket(&self, index: usize) -> &Bucket {
        debug_assert!(index < self.layout.buckets_max + self.layout.overflow_max);
        // SAFETY: the index is in bounds; a bucket is eight atomics, aligned to 64 bytes.
        unsafe { &*self.base.add(self.layout.table_at).cast::<Bucket>().add(index) }
    }

    /// The word of a slot. A slot's number is its bucket's index × 8 + its position there.
    #[inline]
    pub fn slot(&self, number: usize) -> &AtomicU64 {
        &self.bucket(number / 8)[number % 8]
    }

    #[inline]
    pub fn load_slot(&self, number: usize) -> Slot {
        Slot(self.slot(number).load(SHARED))
    }

    /// The address of a byte of the segments.
    #[inline]
    pub fn data_ptr(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.layout.segments * self.layout.segment);
        // SAFETY: inside the mapping: every offset comes from the table or from segment metadata.
        unsafe { self.base.add(self.layout.data_at + offset) }
    }

    #[inline]
    pub fn raw_item(&self, slot: Slot) -> RawItem {
        // SAFETY: the address is inside the segments or at their end, and a spare page follows them.
        unsafe { RawItem::at(self.item_ptr(slot)) }
    }

    /// The address of a slot's item. It is inside the segments or at their end, whatever is in the slot.
    #[inline]
    fn item_ptr(&self, slot: Slot) -> *mut u8 {
        let end = self.layout.segments << self.layout.segment_power;
        self.data_ptr(slot.offset().min(end))
    }

    #[inline]
    pub fn segment_of(&self, offset: usize) -> u32 {
        (offset >> self.layout.segment_power) as u32
    }

    /// The cas number that an item's offset implies.
    #[inline]
    pub fn implied_cas(&self, offset: usize) -> u64 {
        if !self.has_cas.load(LOCKED) {
            return 0;
        }
        let meta = self.segment_meta(self.segment_of(offset));
        meta.first_cas.load(LOCKED) + (offset & (self.layout.segment - 1)) as u64 / 4
    }

    /// Return memory pages to the system; no thread may use them.
    pub fn release_pages(&self, offset: usize, length: usize) {
        let begin = self.base as usize - self.memory.start() as usize;
        self.memory.release_pages(begin + offset, length);
    }

    /// The two buckets of a hash in a table of this many buckets. They are addressed as in linear hashing
    /// (W. Litwin, 1980): each new bucket takes items from one older bucket.
    #[inline]
    pub fn buckets_of(&self, hash: u64, buckets: u64) -> (usize, usize) {
        let mask = u64::MAX >> (buckets | 1).leading_zeros();
        let home = |bits: u64| {
            let index = bits & mask;
            (if index < buckets { index } else { index & (mask >> 1) }) as usize
        };
        (home(hash & 0xffff_ffff), home(hash >> 20 & 0xffff_ffff))
    }

    /// Find the first slot that has the hash's tag and for which `same` is true: its number and its word.
    /// The search is repeated if the table changed meanwhile, so that no item is missed.
    #[inline]
    pub fn search(&self, hash: u64, mut same: impl FnMut(Slot) -> bool) -> Option<(usize, Slot)> {
        loop {
            let table_version = self.head().table_version.load(SHARED);
            let (one, two) = self.buckets_of(hash, self.head().buckets.load(SHARED));
            let found = self.search_buckets(one, two, tag(hash), &mut same);
            if found.is_some() || self.head().table_version.load(SHARED) == table_version {
                return found;
            }
        }
    }

    /// The tags of both buckets are compared at once: see `tags.rs`.
    #[inline]
    fn search_buckets(
        &self,
        one: usize,
        two: usize,
        tag: u64,
        same: &mut impl FnMut(Slot) -> bool,
    ) -> Option<(usize, Slot)> {
        if self.bucket(one)[BUCKET_SLOTS].load(SHARED) != 0 {
            return self.search_chain(one, tag, same).or_else(|| self.search_in(two, tag, same));
        }
        let matches = TagMatches::of(self.bucket(one), self.bucket(two), tag);
        for (second, position) in matches {
            let number = (if second { two } else { one }) * 8 + position;
            let slot = self.load_slot(number);
            if slot.has_tag(tag) && slot.is_live() && same(slot) {
                return Some((number, slot));
            }
        }
        None
    }

    /// Prefetch the buckets that a search will look at.
    #[inline]
    pub fn prefetch_buckets(&self, hash: u64) -> (usize, usize) {
        let (one, two) = self.buckets_of(hash, self.head().buckets.load(LOCKED));
        prefetch(self.bucket(one).as_ptr().cast());
        prefetch(self.bucket(two).as_ptr().cast());
        (one, two)
    }

    /// Prefetch the beginning of the item that a search will most likely find: the number of its slot and
    /// its word.
    #[inline]
    pub fn prefetch_item(&self, (one, two): (usize, usize), tag: u64) -> Option<(usize, Slot)> {
        let (second, position) = TagMatches::of(self.bucket(one), self.bucket(two), tag).next()?;
        let number = (if second { two } else { one }) * 8 + position;
        let slot = self.load_slot(number);
        slot.is_live().then(|| {
            let item = self.item_ptr(slot);
            (0..PREFETCH_LINES).for_each(|line| prefetch(item.wrapping_add(line * 64)));
            (number, slot)
        })
    }

    fn search_in(
        &self,
        bucket: usize,
        tag: u64,
        same: &mut impl FnMut(Slot) -> bool,
    ) -> Option<(usize, Slot)> {
        let numbers = bucket * 8..bucket * 8 + BUCKET_SLOTS;
        let slots = numbers.map(|number| (number, self.load_slot(number)));
        slots.into_iter().find(|(_, slot)| slot.has_tag(tag) && slot.is_live() && same(*slot))
    }

    fn search_chain(
        &self,
        mut bucket: usize,
        tag: u64,
        same: &mut impl FnMut(Slot) -> bool,
    ) -> Option<(usize, Slot)> {
        loop {
            let found = self.search_in(bucket, tag, same);
            let next = self.bucket(bucket)[BUCKET_SLOTS].load(SHARED) as usize;
            if found.is_some() || next == 0 {
                return found;
            }
            bucket = next;
        }
    }

    /// Record a use of an item in its slot. If another thread changed the slot meanwhile, the use is lost.
    #[inline]
    pub fn record_use(&self, number: usize, slot: Slot) {
        if !slot.is_saturated() {
            let _ = self.slot(number).compare_exchange(slot.0, slot.with_use().0, LOCKED, LOCKED);
        }
    }

    /// Whether a pending flush is due.
    #[inline]
    pub fn is_flush_due(&self, now_s: u32) -> bool {
        self.head().flush_at_s.load(LOCKED) <= now_s
    }
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
