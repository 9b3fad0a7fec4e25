//! Another memory limit while the store is in use.

use crate::memory::atomics::SHARED;
use crate::memory::layout::Geometry;
use crate::region::writer::Writer;
use crate::store::Store;

/// The words of a bucket of the table.
const TABLE_WORDS: u64 = 8;
/// A lower limit must leave room for this number of segments beside the table, which never shrinks.
const SEGMENTS_MIN: usize = 8;

impl Store {
    /// A store whose limit can be changed later: raised to at least four times as much, or lowered. If the system
    /// refuses that range of addresses, the limit can only be lowered.
    pub fn adjustable(limit_bytes: usize, hash_power: Option<u32>) -> Result<Store, String> {
        let geometry = Geometry::new(limit_bytes, hash_power)?;
        Store::of(geometry.raisable()).or_else(|_| Store::of(geometry))
    }

    /// Give the table room for 2 to this power slots, as far as half of the memory allows; it grows from there.
    pub fn grow_table_to(&self, hash_power: u32, now_s: u32) {
        let buckets = (1_u64 << hash_power) / TABLE_WORDS / self.regions.len() as u64;
        self.writers(now_s).for_each(|writer| writer.grow_table_to(buckets));
    }

    /// Let the system use huge pages for items. An error says why it does not.
    pub fn use_huge_pages(&self) -> std::io::Result<()> {
        self.regions[0].memory().use_huge_pages()
    }

    /// Let all cas numbers be 0, so that no comparison succeeds.
    pub fn disable_cas(&self) {
        self.regions.iter().for_each(|region| region.has_cas.store(false, SHARED));
    }

    /// The memory limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(SHARED)
    }

    /// Change the memory limit. False if this limit is not possible. After a lower one, call `approach_limit` until
    /// the limit is reached.
    pub fn set_limit_bytes(&self, limit_bytes: u64, now_s: u32) -> bool {
        let lowest = crate::LIMIT_BYTES_MIN as u64;
        if !(lowest..=self.geometry.limit_bytes_max).contains(&limit_bytes)
            || self.regions[0].shared
        {
            return false;
        }
        let limit = self.geometry.region_limit(limit_bytes);
        if self.writers(now_s).any(|writer| writer.segments_within(limit) < SEGMENTS_MIN) {
            return false;
        }
        self.limit_bytes.store(limit_bytes, SHARED);
        for region in self.regions.iter().filter(|region| region.limit.load(SHARED) < limit) {
            region.set_limit(limit);
        }
        true
    }

    /// Take a step towards a limit that was lowered: each region gives up one segment, so that no lock is held for
    /// long. False once the limit is reached.
    pub fn approach_limit(&self, now_s: u32) -> bool {
        let target = self.geometry.region_limit(self.limit_bytes());
        let mut reached = true;
        for region in &self.regions {
            let mut writer = Writer::new(region, &self.grace_periods, now_s);
            let limit = region.limit.load(SHARED);
            if limit > target {
                writer.lower_limit(target.max(limit.saturating_sub(region.layout.segment)));
                reached &= region.limit.load(SHARED) <= target;
            }
        }
        !reached
    }
}
