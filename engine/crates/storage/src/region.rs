//! A region as its readers see it: where things are, and how an item is found without a lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::counters::Counters;
use crate::item::Placed;
use crate::layout::{BUCKET_SLOTS, Layout, Note, RegionHead, StoreHead};
use crate::memory::Memory;
use crate::slot::{Slot, tag};
use crate::stock::Stock;
use crate::tags::{Bucket, Places};

/// The ordering of what readers and writers both touch: that of one sequence for all. On the
/// machines that matter it costs readers nothing over a weaker one.
pub const SEEN: Ordering = Ordering::SeqCst;
/// The ordering of what only the holder of the lock touches, or what is a hint.
pub const OWN: Ordering = Ordering::Relaxed;

/// What is fetched of an item before it is read: head, key and the value of a small one.
const WARM_LINES: usize = 3;

/// A region: a part of the store with a lock, a table and segments of its own.
pub struct Region {
    memory: Arc<Memory>,
    base: *mut u8,
    pub layout: Layout,
    /// Whether other processes map it.
    pub shared: bool,
    /// What is this process's own; its lock is the region's first.
    pub local: Mutex<Local>,
}

// SAFETY: what is behind `base` is atomics, or bytes of segments, which are written only under the
// lock and before a slot leads to them (see `writer.rs`).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// What a process keeps of a region beside it.
#[derive(Default)]
pub struct Local {
    pub counters: Counters,
    pub stock: Stock,
}

impl Region {
    /// The region at an offset of the store's memory.
    pub fn new(memory: &Arc<Memory>, offset: usize, layout: Layout, shared: bool) -> Region {
        Region {
            base: memory.start().wrapping_add(offset),
            memory: Arc::clone(memory),
            layout,
            shared,
            local: Mutex::default(),
        }
    }

    /// What all regions share, at the beginning of the memory.
    pub fn store(&self) -> &StoreHead {
        // SAFETY: the mapping begins with it, page-aligned, all atomics.
        unsafe { &*self.memory.start().cast::<StoreHead>() }
    }

    #[inline]
    pub fn head(&self) -> &RegionHead {
        // SAFETY: a region begins with its head, page-aligned, all atomics; zeros are valid.
        unsafe { &*self.base.cast::<RegionHead>() }
    }

    #[inline]
    pub fn note(&self, segment: u32) -> &Note {
        debug_assert!((segment as usize) < self.layout.segments);
        // SAFETY: there are `segments` notes, all atomics.
        unsafe { &*self.base.add(self.layout.notes_at).cast::<Note>().add(segment as usize) }
    }

    /// The words of a bucket: slots, then the overflow bucket that follows (0 for none).
    #[inline]
    pub fn bucket(&self, index: usize) -> &Bucket {
        debug_assert!(index < self.layout.buckets_most + self.layout.overflow_most);
        // SAFETY: so many buckets of eight words are there, on 64 bytes, all atomics.
        unsafe { &*self.base.add(self.layout.table_at).cast::<Bucket>().add(index) }
    }

    /// A slot by its number: bucket × 8 + place.
    #[inline]
    pub fn slot(&self, number: usize) -> &AtomicU64 {
        &self.bucket(number / 8)[number % 8]
    }

    #[inline]
    pub fn load(&self, number: usize) -> Slot {
        Slot(self.slot(number).load(SEEN))
    }

    /// A byte of the segments.
    #[inline]
    pub fn byte(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.layout.segments * self.layout.segment);
        // SAFETY: inside the mapping, as asserted: every offset comes from the table or the notes.
        unsafe { self.base.add(self.layout.data_at + offset) }
    }

    #[inline]
    pub fn placed(&self, slot: Slot) -> Placed {
        // SAFETY: inside the segments, and a page to spare follows them.
        unsafe { Placed::at(self.placed_bytes(slot)) }
    }

    /// Where an item is; inside the segments, or at their end, whatever the slot says.
    #[inline]
    fn placed_bytes(&self, slot: Slot) -> *mut u8 {
        let end = self.layout.segments << self.layout.segment_power;
        self.byte(slot.offset().min(end))
    }

    #[inline]
    pub fn segment_of(&self, offset: usize) -> u32 {
        (offset >> self.layout.segment_power) as u32
    }

    /// The unique number that an item's place implies.
    #[inline]
    pub fn implied_cas(&self, offset: usize) -> u64 {
        let note = self.note(self.segment_of(offset));
        note.cas.load(OWN) + (offset & (self.layout.segment - 1)) as u64 / 4
    }

    pub fn discard(&self, offset: usize, length: usize) {
        let begin = self.base as usize - self.memory.start() as usize;
        self.memory.discard(begin + offset, length);
    }

    /// The two buckets that a hash may be in when the table has so many. A table that grows is
    /// addressed as in linear hashing (W. Litwin, 1980): the newest buckets take from one each.
    #[inline]
    pub fn homes(&self, hash: u64, buckets: u64) -> (usize, usize) {
        let mask = u64::MAX >> (buckets | 1).leading_zeros();
        let home = |bits: u64| {
            let index = bits & mask;
            (if index < buckets { index } else { index & (mask >> 1) }) as usize
        };
        (home(hash & 0xffff_ffff), home(hash >> 20 & 0xffff_ffff))
    }

    /// The number and the word of the first slot that has a hash's tag and is the one. It is asked
    /// again where the table changed meanwhile; nothing is ever overlooked.
    #[inline]
    pub fn search(&self, hash: u64, mut same: impl FnMut(Slot) -> bool) -> Option<(usize, Slot)> {
        loop {
            let shape = self.head().shape.load(SEEN);
            let (one, two) = self.homes(hash, self.head().buckets.load(SEEN));
            let found = self.search_buckets(one, two, tag(hash), &mut same);
            if found.is_some() || self.head().shape.load(SEEN) == shape {
                return found;
            }
        }
    }

    /// Both buckets are looked at before either is judged: see `tags.rs`.
    #[inline]
    fn search_buckets(
        &self,
        one: usize,
        two: usize,
        tag: u64,
        same: &mut impl FnMut(Slot) -> bool,
    ) -> Option<(usize, Slot)> {
        if self.bucket(one)[BUCKET_SLOTS].load(SEEN) != 0 {
            return self.search_chain(one, tag, same).or_else(|| self.search_in(two, tag, same));
        }
        let places = Places::of(self.bucket(one), self.bucket(two), tag);
        for (second, place) in places {
            let number = (if second { two } else { one }) * 8 + place;
            let slot = self.load(number);
            if slot.has_tag(tag) && slot.is_live() && same(slot) {
                return Some((number, slot));
            }
        }
        None
    }

    /// Fetch the buckets that a search will look at.
    #[inline]
    pub fn warm_slots(&self, hash: u64) -> (usize, usize) {
        let (one, two) = self.homes(hash, self.head().buckets.load(OWN));
        prefetch(self.bucket(one).as_ptr().cast());
        prefetch(self.bucket(two).as_ptr().cast());
        (one, two)
    }

    /// Fetch the beginning of the item that a search will most likely find; the number of its slot,
    /// and what is in it.
    #[inline]
    pub fn warm_item(&self, (one, two): (usize, usize), tag: u64) -> Option<(usize, Slot)> {
        let (second, place) = Places::of(self.bucket(one), self.bucket(two), tag).next()?;
        let number = (if second { two } else { one }) * 8 + place;
        let slot = self.load(number);
        slot.is_live().then(|| {
            let item = self.placed_bytes(slot);
            (0..WARM_LINES).for_each(|line| prefetch(item.wrapping_add(line * 64)));
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
        let slots = numbers.map(|number| (number, self.load(number)));
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
            let next = self.bucket(bucket)[BUCKET_SLOTS].load(SEEN) as usize;
            if found.is_some() || next == 0 {
                return found;
            }
            bucket = next;
        }
    }

    /// Note a use of an item. Where another thread changed the slot, its word stands.
    #[inline]
    pub fn use_slot(&self, number: usize, slot: Slot) {
        if !slot.is_worn() {
            let _ = self.slot(number).compare_exchange(slot.0, slot.used().0, OWN, OWN);
        }
    }

    /// Whether a flush waits whose time has come.
    #[inline]
    pub fn flush_due(&self, now_s: u32) -> bool {
        self.head().flush_at_s.load(OWN) <= now_s
    }
}

/// Add to a count that only the holder of the lock changes.
pub fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(OWN).wrapping_add(more), OWN);
}

/// Take from such a count.
pub fn subtract(count: &AtomicU64, less: u64) {
    count.store(count.load(OWN).saturating_sub(less), OWN);
}

/// Take from such a word.
pub fn reduce(count: &AtomicU32, less: usize) {
    count.store(count.load(OWN).saturating_sub(less as u32), OWN);
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
