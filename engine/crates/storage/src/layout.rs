//! Where everything is inside a store's memory; the same in every process that maps it.
//!
//! `[store's head][region 0][region 1]…`, and in a region
//! `[head][segments' notes][buckets][overflow buckets][segments][a page to spare]`. Buckets and
//! segments are reserved in plenty; the system gives pages to what is used.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::memory::PAGE_BYTES;
use crate::slot::REACH_BYTES;

/// A store is never smaller.
pub const LIMIT_BYTES_LEAST: usize = 64 << 10;
/// A region holds at least this much before a second one is made.
const REGION_BYTES_LEAST: usize = 32 << 20;
const REGIONS_MOST: usize = 4;
const SEGMENT_BYTES_MOST: usize = 256 << 10;
/// Segments of a region are made longer before there are more of them than this.
const SEGMENTS_MOST: usize = 8192;
pub const BUCKET_BYTES: usize = 64;
/// Slots of a bucket; the eighth word names its overflow bucket.
pub const BUCKET_SLOTS: usize = 7;
/// What a table that grows begins with.
const BUCKETS_LEAST: usize = 64;
/// Tables of more than 2³² slots are beyond what hashes are cut for.
pub const HASH_POWER_MOST: u32 = 32;
pub const HASH_POWER_LEAST: u32 = 10;

/// How large a store is and how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Geometry {
    pub limit_bytes: u64,
    /// 0 where the table grows.
    pub hash_power: u64,
    pub regions: u64,
}

/// The layout of one region, in bytes from its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What it may take of the system's memory.
    pub limit: usize,
    /// A power of two, and which.
    pub segment: usize,
    pub segment_power: u32,
    pub segments: usize,
    /// Buckets that a table that grows begins with, or a fixed one has.
    pub buckets: usize,
    pub buckets_most: usize,
    pub overflow_most: usize,
    pub notes_at: usize,
    pub table_at: usize,
    pub data_at: usize,
    pub length: usize,
}

impl Geometry {
    /// The geometry of a store of so many bytes. An error where a fixed table leaves no room.
    pub fn new(limit_bytes: usize, hash_power: Option<u32>) -> Result<Geometry, String> {
        let limit = limit_bytes.max(LIMIT_BYTES_LEAST);
        if let Some(power) = hash_power {
            if !(HASH_POWER_LEAST..=HASH_POWER_MOST).contains(&power) {
                return Err(format!(
                    "a hash power of {power}: it is from {HASH_POWER_LEAST} to {HASH_POWER_MOST}"
                ));
            }
            if 8_u64 << power > limit as u64 / 2 {
                let table = (8_u64 << power) >> 10;
                let memory = limit >> 10;
                return Err(format!(
                    "a hash power of {power} is a table of {table} KiB, more than half of the \
                     {memory} KiB in all; give less of it, or more memory"
                ));
            }
        }
        let regions = (limit / REGION_BYTES_LEAST).clamp(1, REGIONS_MOST) as u64;
        let hash_power = u64::from(hash_power.unwrap_or(0));
        Ok(Geometry { limit_bytes: limit as u64, hash_power, regions })
    }

    /// The layout of each region.
    pub fn layout(&self) -> Layout {
        let regions = self.regions as usize;
        let limit = (self.limit_bytes as usize
            - size_of::<StoreHead>().next_multiple_of(PAGE_BYTES))
            / regions;
        let fair = (limit / 64).next_power_of_two() / 2;
        let segment = fair
            .clamp(PAGE_BYTES, SEGMENT_BYTES_MOST)
            .max((limit / SEGMENTS_MOST).next_power_of_two());
        let segments = (limit / segment).min((REACH_BYTES / segment as u64) as usize);
        let grows = self.hash_power == 0;
        let buckets = match grows {
            true => BUCKETS_LEAST.min(limit / 64 / BUCKET_BYTES),
            false => (1 << self.hash_power) / (BUCKET_SLOTS + 1) / regions,
        };
        let buckets_most = if grows { limit / 2 / BUCKET_BYTES } else { buckets };
        let overflow_most = limit / 2 / BUCKET_BYTES;
        let page = |bytes: usize| bytes.next_multiple_of(PAGE_BYTES);
        let notes_at = page(size_of::<RegionHead>());
        let table_at = notes_at + page(segments * size_of::<Note>());
        let data_at = table_at + page((buckets_most + overflow_most) * BUCKET_BYTES);
        let length = data_at + page(segments * segment) + PAGE_BYTES;
        Layout {
            limit,
            segment,
            segment_power: segment.trailing_zeros(),
            segments,
            buckets,
            buckets_most,
            overflow_most,
            notes_at,
            table_at,
            data_at,
            length,
        }
    }

    /// What the whole store reserves.
    pub fn length(&self) -> usize {
        self.region_at(self.regions as usize)
    }

    pub fn region_at(&self, index: usize) -> usize {
        size_of::<StoreHead>().next_multiple_of(PAGE_BYTES) + index * self.layout().length
    }
}

/// What the regions share.
#[repr(C)]
pub struct StoreHead {
    /// Written last, when the rest is in its place.
    pub magic: AtomicU64,
    /// What a known text hashes to: a program that hashes otherwise must not touch the store.
    pub hash: AtomicU64,
    pub limit_bytes: AtomicU64,
    pub hash_power: AtomicU64,
    pub regions: AtomicU64,
    /// No item has this unique number or a higher one, except those in open segments, which were
    /// given a range of them.
    pub next_cas: AtomicU64,
}

/// No segment, or no flush to come.
pub const NONE: u32 = u32::MAX;

/// What is known of a region.
#[repr(C, align(64))]
pub struct RegionHead {
    /// Readers read these on every call: a line of their own.
    pub buckets: AtomicU64,
    /// Counts changes of the table after which a reader may have missed an item.
    pub shape: AtomicU64,
    /// The second of a flush that waits.
    pub flush_at_s: AtomicU32,
    pub quiet: [u32; 11],
    /// A lock between processes; see `lock.rs`.
    pub lock: [AtomicU64; 8],
    pub items: AtomicU64,
    /// Of living items, heads included.
    pub bytes: AtomicU64,
    /// Overflow buckets that were ever used, and the first of those that are free again.
    pub overflow_used: AtomicU64,
    pub overflow_free: AtomicU64,
    /// Counts segments as they are opened: their order of age.
    pub order: AtomicU64,
    /// The open segment of each queue.
    pub open: [AtomicU32; 2],
}

/// What is known of a segment.
#[repr(C)]
pub struct Note {
    pub state: AtomicU32,
    /// Counts its reuses.
    pub generation: AtomicU32,
    /// Bytes written, and those of them that living items have.
    pub used: AtomicU32,
    pub live: AtomicU32,
    /// When the first of its items expires, as far as is known; `NONE` for never.
    pub expires_s: AtomicU32,
    /// Segments that a large item has, this one being the first.
    pub run: AtomicU32,
    /// The unique number of an item at its first byte.
    pub cas: AtomicU64,
    pub order: AtomicU64,
    /// After which grace it may be used again.
    pub grace: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_fill_what_they_may() {
        for megabytes in [1, 8, 64, 1024, 100_000] {
            let geometry = Geometry::new(megabytes << 20, None).expect("fair");
            let layout = geometry.layout();
            assert!(layout.segments >= 60 && layout.segments <= 2 * SEGMENTS_MOST);
            assert_eq!(1 << layout.segment_power, layout.segment);
            assert!(layout.limit * geometry.regions as usize <= megabytes << 20);
            assert!(layout.segments * layout.segment > layout.limit / 10 * 9);
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
