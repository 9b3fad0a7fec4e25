//! Where everything is inside a store's memory. It is the same in every process that maps the memory.
//!
//! `[store head][region 0][region 1]…`, and each region is
//! `[head][segment metadata][buckets][overflow buckets][segments][a spare page]`. More address space is
//! reserved for buckets and segments than the limit allows to use: the system gives pages only to what
//! is written.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::memory::mapping::PAGE_BYTES;

/// A slot has this many bits for an item's offset from the first segment, in words of four bytes, plus one.
pub const LOCATION_BITS: u32 = 38;
/// The highest offset that fits a slot.
const ADDRESSABLE_BYTES: u64 = ((1 << LOCATION_BITS) - 3) * 4;
/// The smallest store.
pub const LIMIT_BYTES_MIN: usize = 64 << 10;
/// A store has a second region only if each region has this much memory.
const REGION_BYTES_MIN: usize = 32 << 20;
const REGIONS_MAX: usize = 4;
const SEGMENT_BYTES_MAX: usize = 256 << 10;
/// A region with more memory has longer segments, not more of them.
const SEGMENTS_MAX: usize = 8192;
/// If the limit may be raised later, to at least this number of times the first one.
const RAISE_MIN: u64 = 4;
pub const BUCKET_BYTES: usize = 64;
/// Slots of a bucket. Its eighth word is the index of its overflow bucket.
pub const BUCKET_SLOTS: usize = 7;
/// The initial size of a table that grows.
const BUCKETS_MIN: usize = 64;
/// A bucket's index comes from 32 bits of the hash.
pub const HASH_POWER_MAX: u32 = 32;
pub const HASH_POWER_MIN: u32 = 10;

/// The size of a store, from which its layout follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Geometry {
    pub limit_bytes: u64,
    /// The highest limit that may be set later.
    pub limit_bytes_max: u64,
    /// 0 if the table grows.
    pub hash_power: u64,
    pub regions: u64,
}

/// The layout of a region. Offsets are in bytes from its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The length of a segment, a power of two.
    pub segment: usize,
    pub segment_power: u32,
    /// How many segments the highest limit allows.
    pub segments: usize,
    /// Buckets at the beginning. A table with a fixed hash power never has more.
    pub buckets: usize,
    pub buckets_max: usize,
    pub overflow_max: usize,
    pub segment_meta_at: usize,
    pub table_at: usize,
    pub data_at: usize,
    pub length: usize,
}

impl Geometry {
    /// The geometry of a store with this memory limit. It fails if a fixed table leaves too little room.
    pub fn new(limit_bytes: usize, hash_power: Option<u32>) -> Result<Geometry, String> {
        let limit = limit_bytes.max(LIMIT_BYTES_MIN);
        if let Some(power) = hash_power {
            if !(HASH_POWER_MIN..=HASH_POWER_MAX).contains(&power) {
                return Err(format!(
                    "hash power {power} is not between {HASH_POWER_MIN} and {HASH_POWER_MAX}"
                ));
            }
            if 8_u64 << power > limit as u64 / 2 {
                let table = (8_u64 << power) >> 10;
                let memory = limit >> 10;
                return Err(format!(
                    "hash power {power} means a table of {table} KiB, which is more than half of the \
                     {memory} KiB in all; give less of it, or more memory"
                ));
            }
        }
        let regions = (limit / REGION_BYTES_MIN).clamp(1, REGIONS_MAX) as u64;
        let hash_power = u64::from(hash_power.unwrap_or(0));
        let limit_bytes = limit as u64;
        Ok(Geometry { limit_bytes, limit_bytes_max: limit_bytes, hash_power, regions })
    }

    /// The same store with addresses for a higher limit.
    pub fn raisable(self) -> Geometry {
        let all_segments = self.regions * (SEGMENTS_MAX * self.layout().segment) as u64;
        Geometry { limit_bytes_max: all_segments.max(RAISE_MIN * self.limit_bytes), ..self }
    }

    /// The share of each region in a limit.
    pub fn region_limit(&self, limit_bytes: u64) -> usize {
        (limit_bytes as usize - size_of::<StoreHead>().next_multiple_of(PAGE_BYTES))
            / self.regions as usize
    }

    /// The layout of each region.
    pub fn layout(&self) -> Layout {
        let regions = self.regions as usize;
        let limit = self.region_limit(self.limit_bytes);
        let limit_max = self.region_limit(self.limit_bytes_max);
        let fair = (limit / 64).next_power_of_two() / 2;
        let segment = fair
            .clamp(PAGE_BYTES, SEGMENT_BYTES_MAX)
            .max((limit / SEGMENTS_MAX).next_power_of_two());
        let segments = (limit_max / segment).min((ADDRESSABLE_BYTES / segment as u64) as usize);
        let grows = self.hash_power == 0;
        let buckets = match grows {
            true => BUCKETS_MIN.min(limit / 64 / BUCKET_BYTES),
            false => (1 << self.hash_power) / (BUCKET_SLOTS + 1) / regions,
        };
        let buckets_max = if grows { limit_max / 2 / BUCKET_BYTES } else { buckets };
        let overflow_max = limit_max / 2 / BUCKET_BYTES;
        let page = |bytes: usize| bytes.next_multiple_of(PAGE_BYTES);
        let segment_meta_at = page(size_of::<RegionHead>());
        let table_at = segment_meta_at + page(segments * size_of::<SegmentMeta>());
        let data_at = table_at + page((buckets_max + overflow_max) * BUCKET_BYTES);
        let length = data_at + page(segments * segment) + PAGE_BYTES;
        Layout {
            segment,
            segment_power: segment.trailing_zeros(),
            segments,
            buckets,
            buckets_max,
            overflow_max,
            segment_meta_at,
            table_at,
            data_at,
            length,
        }
    }

    /// The address space that the whole store reserves.
    pub fn length(&self) -> usize {
        self.region_at(self.regions as usize)
    }

    pub fn region_at(&self, index: usize) -> usize {
        size_of::<StoreHead>().next_multiple_of(PAGE_BYTES) + index * self.layout().length
    }
}

/// The state that all regions share.
#[repr(C)]
pub struct StoreHead {
    /// Written last, when the rest is complete.
    pub magic: AtomicU64,
    /// The hash of a fixed text: a program with another hash function must not use the store.
    pub hash: AtomicU64,
    pub limit_bytes: AtomicU64,
    pub hash_power: AtomicU64,
    pub regions: AtomicU64,
    /// The next unused cas number. Every segment reserves a range of them when it is opened.
    pub next_cas: AtomicU64,
}

/// No segment, or no pending flush.
pub const NONE: u32 = u32::MAX;

/// The state of a region.
#[repr(C, align(64))]
pub struct RegionHead {
    /// Readers load these on every call, so they have a cache line of their own.
    pub buckets: AtomicU64,
    /// Incremented by every change during which a reader may have missed an item.
    pub table_version: AtomicU64,
    /// When a pending flush is due.
    pub flush_at_s: AtomicU32,
    pub padding: [u32; 11],
    /// The lock between processes; see `robust_mutex.rs`.
    pub lock: [AtomicU64; 8],
    pub items: AtomicU64,
    /// Bytes of live items, with their headers.
    pub bytes: AtomicU64,
    /// Overflow buckets that were ever used, and the first of the free list.
    pub overflow_used: AtomicU64,
    pub overflow_free: AtomicU64,
    /// The sequence number of the next segment that is opened.
    pub next_sequence: AtomicU64,
    /// The open segment of each queue.
    pub open_segments: [AtomicU32; 2],
}

/// The state of a segment.
#[repr(C)]
pub struct SegmentMeta {
    pub state: AtomicU32,
    /// Incremented whenever the segment is retired or reused.
    pub generation: AtomicU32,
    /// Bytes that were written, and how many of them belong to live items.
    pub used_bytes: AtomicU32,
    pub live_bytes: AtomicU32,
    /// No item expires before this; `NONE` if none expires.
    pub earliest_expiry_s: AtomicU32,
    /// 1; of a large item's first segment, the number of its segments; of the others, 0.
    pub run_length: AtomicU32,
    /// The cas number that an item at the first byte has.
    pub first_cas: AtomicU64,
    /// Segments are ordered by age: the oldest has the lowest number.
    pub sequence: AtomicU64,
    /// A retired segment may be reused from this epoch on.
    pub reusable_at_epoch: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fill_the_memory_limit() {
        for megabytes in [1, 8, 64, 1024, 100_000] {
            let geometry = Geometry::new(megabytes << 20, None).expect("fair");
            let layout = geometry.layout();
            assert!(layout.segments >= 60 && layout.segments <= 2 * SEGMENTS_MAX);
            assert_eq!(1 << layout.segment_power, layout.segment);
            let limit = geometry.region_limit(geometry.limit_bytes);
            assert!(limit * geometry.regions as usize <= megabytes << 20);
            assert!(layout.segments * layout.segment > limit / 10 * 9);
        }
    }

    #[test]
    fn addresses_for_a_higher_limit_change_no_segment() {
        for megabytes in [1, 64, 1024, 100_000] {
            let fixed = Geometry::new(megabytes << 20, None).expect("fair");
            let raisable = fixed.raisable();
            assert!(raisable.limit_bytes_max >= 4 * fixed.limit_bytes);
            let (fixed, raisable) = (fixed.layout(), raisable.layout());
            assert_eq!((fixed.segment, fixed.buckets), (raisable.segment, raisable.buckets));
            assert!(raisable.segments >= 4 * fixed.segments);
        }
    }

    #[test]
    fn a_table_that_leaves_no_room_is_refused() {
        assert!(Geometry::new(1 << 20, Some(16)).is_ok());
        let error = Geometry::new(1 << 20, Some(17)).expect_err("too large");
        assert!(error.contains("more than half"), "{error}");
        assert!(Geometry::new(1 << 20, Some(3)).is_err());
    }
}
