//! Items that leave the store without a delete: whether they are evicted, and who is told.

use std::sync::Arc;

use crate::memory::atomics::SHARED;
use crate::region::EvictionObserver;
use crate::region::writer::Writer;
use crate::store::Store;

impl Store {
    /// Remove an item that must not be served any more. This is not counted as a delete.
    pub fn discard(&self, key: &[u8], now_s: u32) {
        self.entry(key, now_s).remove();
    }

    /// Remove the items that have expired, which otherwise happens when their memory is needed. Segments without
    /// such items are skipped, and no lock is held for longer than a segment takes. Returns how many there were.
    pub fn remove_expired(&self, now_s: u32) -> u64 {
        let mut expired = 0;
        for region in &self.regions {
            for segment in 0..region.segments.load(SHARED) as u32 {
                let mut writer = Writer::new(region, &self.grace_periods, now_s);
                expired += writer.sweep_if_due(segment);
            }
        }
        expired
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
