//! A writer's counts by the size of items.

use crate::counters::Counters;
use crate::items::item::RawItem;
use crate::memory::atomics::LOCKED;
use crate::region::writer::Writer;

impl Writer<'_> {
    /// An item entered the table.
    pub fn count_entry(&mut self, raw: RawItem) {
        if let Some(classes) = self.region.size_classes.get() {
            let (bytes, class) = classes.of_item(raw);
            let usage = &mut self.local.by_class[class];
            (usage.items, usage.bytes) = (usage.items + 1, usage.bytes + bytes as u64);
            usage.was_used = true;
        }
    }

    /// An item left the table.
    pub fn count_exit(&mut self, raw: RawItem) {
        if let Some(classes) = self.region.size_classes.get() {
            let (bytes, class) = classes.of_item(raw);
            let usage = &mut self.local.by_class[class];
            usage.items = usage.items.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(bytes as u64);
        }
    }

    /// Count something about an item, for the region and for the class of the item's size.
    pub fn count(&mut self, raw: RawItem, mut change: impl FnMut(&mut Counters)) {
        change(&mut self.local.counters);
        if let Some(classes) = self.region.size_classes.get() {
            change(&mut self.local.by_class[classes.of_item(raw).1].counters);
        }
    }

    /// Count the items that are in the table.
    pub fn count_present(&mut self) {
        let region = self.region;
        for number in (0..region.head().buckets.load(LOCKED) as usize).flat_map(|b| region.chain(b))
        {
            let slot = region.load_slot(number);
            if slot.is_live() {
                self.count_entry(region.raw_item(slot));
            }
        }
    }

    /// A flush removes all items.
    pub fn count_flushed(&mut self) {
        let (region, local) = (self.region, &mut *self.local);
        let slots = (0..region.head().buckets.load(LOCKED) as usize)
            .flat_map(|bucket| region.chain(bucket))
            .map(|number| region.load_slot(number));
        let unfetched = slots.filter(|slot| slot.is_live() && !slot.fetched()).count();
        local.counters.expired_unfetched += unfetched as u64;
        local.counters.reclaimed += region.head().items.load(LOCKED);
        for usage in &mut local.by_class {
            usage.counters.reclaimed += usage.items;
            (usage.items, usage.bytes) = (0, 0);
        }
    }
}
