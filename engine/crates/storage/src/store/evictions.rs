//! Items that leave the store without a delete: whether they are evicted, and who hears of it.

use std::sync::Arc;

use crate::memory::atomics::SHARED;
use crate::region::EvictionObserver;
use crate::region::expire::Remover;
use crate::region::writer::Writer;
use crate::store::Store;

impl Store {
    /// Remove an item that must not be served any more. This is not counted as a delete.
    pub fn discard(&self, key: &[u8], now_s: u32) {
        self.entry(key, now_s).remove();
    }

    /// Remove the items that have expired, which otherwise happens when their memory is needed. Returns how many
    /// there were, which are counted as `crawler_reclaimed`.
    pub fn remove_expired(&self, now_s: u32) -> u64 {
        self.sweep_from(0, now_s, Remover::Crawler, || true).0
    }

    /// The same for a part of the store: from this segment on, as long as `goes_on` is true. The items are counted as
    /// `reclaimed`. Returns the segment to go on from: 0 after the last.
    pub fn remove_expired_from(
        &self,
        first: usize,
        now_s: u32,
        goes_on: impl FnMut() -> bool,
    ) -> usize {
        self.sweep_from(first, now_s, Remover::Store, goes_on).1
    }

    /// Segments without expired items are skipped, and no lock is held for longer than a segment takes. Returns how
    /// many items there were, and the segment to go on from.
    fn sweep_from(
        &self,
        first: usize,
        now_s: u32,
        remover: Remover,
        mut goes_on: impl FnMut() -> bool,
    ) -> (u64, usize) {
        let (mut expired, mut number) = (0, 0);
        for region in &self.regions {
            for segment in 0..region.segments.load(SHARED) as u32 {
                number += 1;
                if number <= first || !region.may_have_expired(segment, now_s) {
                    continue;
                }
                let mut writer = Writer::new(region, &self.grace_periods, now_s);
                expired += writer.sweep_if_due(segment, remover);
                drop(writer);
                if !goes_on() {
                    return (expired, number);
                }
            }
        }
        (expired, 0)
    }

    /// Whether items are evicted where there is no room for a new one. By default they are.
    pub fn evicts(&self) -> bool {
        self.regions.iter().all(|region| region.evicts.load(SHARED))
    }

    pub fn set_evicts(&self, evicts: bool) {
        self.regions.iter().for_each(|region| region.evicts.store(evicts, SHARED));
    }

    /// Call a function with the key of each item that this process evicts, the item, and the time. It must not
    /// call the store. Only the first function is called.
    pub fn observe_evictions(&self, observer: &EvictionObserver) {
        for region in &self.regions {
            // It has an observer already.
            let _ = region.observer.set(Arc::clone(observer));
        }
    }
}
