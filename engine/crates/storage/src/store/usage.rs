//! The contents and counters of a store.

use std::sync::Arc;

use crate::counters::Counters;
use crate::memory::atomics::LOCKED;
use crate::size_classes::{ClassUsage, SizeClasses};
use crate::store::Store;

/// The contents and counters of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of live items, with their headers.
    pub bytes: u64,
    /// Bytes of the hash table.
    pub table_bytes: u64,
    /// Bytes of the segments that have items, or had some that a reader may still see.
    pub segment_bytes: u64,
    /// The same with the segments that wait for items.
    pub taken_bytes: u64,
    pub items: u64,
    pub limit_bytes: u64,
    /// The counts of this process.
    pub counters: Counters,
}

impl Store {
    /// The contents and counters of the store. This locks each region in turn.
    pub fn usage(&self, now_s: u32) -> Usage {
        let mut usage = Usage { limit_bytes: self.limit_bytes(), ..Usage::default() };
        for writer in self.writers(now_s) {
            let head = writer.region.head();
            usage.bytes += head.bytes.load(LOCKED);
            usage.items += head.items.load(LOCKED);
            usage.table_bytes += writer.table_bytes() as u64;
            let (segments, length) = (writer.count_segments(), writer.region.layout.segment);
            usage.segment_bytes += (segments.used * length) as u64;
            usage.taken_bytes += ((segments.used + segments.free) * length) as u64;
            usage.counters.add(&writer.local.counters);
        }
        let (hits, misses) = self.grace_periods.read_counts();
        usage.counters.get_hits += hits;
        usage.counters.get_misses += misses;
        usage
    }

    /// Count items by their sizes from now on. Only the first call has an effect.
    pub fn count_by_size(&self, classes: SizeClasses, now_s: u32) {
        self.grace_periods.count_by_class();
        let classes = Arc::new(classes);
        for mut writer in self.writers(now_s) {
            writer.local.by_class = vec![ClassUsage::default(); classes.largest().len()];
            // It has classes already.
            let _ = writer.region.size_classes.set(Arc::clone(&classes));
            writer.count_present();
        }
    }

    /// The sizes by which items are counted, if they are.
    pub fn size_classes(&self) -> Option<&SizeClasses> {
        self.regions[0].size_classes.get().map(|classes| &**classes)
    }

    /// The items and counters of each class of sizes. This locks each region in turn.
    pub fn usage_by_size(&self, now_s: u32) -> Vec<ClassUsage> {
        let classes = self.size_classes().map_or(0, |classes| classes.largest().len());
        let mut usage = vec![ClassUsage::default(); classes];
        for writer in self.writers(now_s) {
            usage.iter_mut().zip(&writer.local.by_class).for_each(|(sum, part)| sum.add(part));
        }
        for (class, usage) in usage.iter_mut().enumerate() {
            usage.counters.get_hits += self.grace_periods.hits_of_class(class);
        }
        usage
    }

    /// How many segments were opened so far, by any process. This takes no lock.
    pub fn segments_begun(&self) -> u64 {
        self.regions.iter().map(|region| region.head().next_sequence.load(LOCKED)).sum()
    }

    /// Reset all counters to 0.
    pub fn reset_counters(&self) {
        for region in &self.regions {
            let mut local = region.local.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            local.counters = Counters::default();
            local.by_class.iter_mut().for_each(|usage| usage.counters = Counters::default());
        }
        self.grace_periods.reset_counts();
    }
}
