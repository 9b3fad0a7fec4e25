//! A snapshot's answers about a server's memory: for how long items lie unread, and what less memory would give up.
//!
//! memcached does not note each access. The first read of an item leaves the time of its last access as it is, and so
//! do reads while the item is marked as active. So the time that has passed since then is the longest for which an item
//! can have been idle. Of an item that was never read it is exact: it was stored then. This gives two bounds of the memory
//! that was not read for some time, whatever the traffic is. How many reads the items of that memory would get is not in
//! a snapshot: reads since the last noted one leave no trace.

use cachemark_trace::file::Record;
use serde::Serialize;

use crate::slabs::{SlabClasses, item_bytes};

/// For how long items lay unread, in seconds.
const IDLE_S: [u64; 9] = [1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600];

/// Items, and the chunks that memcached charges for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Amount {
    pub items: f64,
    pub bytes: f64,
}

impl Amount {
    fn add(&mut self, item: &HeldItem) {
        self.items += 1.0;
        self.bytes += f64::from(item.charged);
    }

    fn scaled(self, factor: f64) -> Amount {
        Amount { items: self.items * factor, bytes: self.bytes * factor }
    }
}

/// The memory that no client has read for at least this time: between the two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Idle {
    pub idle_s: u64,
    /// Never read, and stored so long ago.
    pub at_least: Amount,
    /// The last access that the server noted is so long ago.
    pub at_most: Amount,
}

/// The items that do not fit into a memory, if those items go first whose last noted access is longest ago.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GivenUp {
    pub memory_bytes: u64,
    pub items: Amount,
    /// Of these: never read since they were stored.
    pub never_read: Amount,
    /// The last noted access of each of them is at least so long ago.
    pub idle_s: u64,
}

/// The answers of a snapshot. A sampled one has the amounts of all keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    pub items: Amount,
    pub never_read: Amount,
    pub without_expiry: Amount,
    pub idle: Vec<Idle>,
    pub given_up: Vec<GivenUp>,
}

#[derive(Clone, Copy)]
struct HeldItem {
    accessed_s: u64,
    charged: u32,
    was_read: bool,
    expires: bool,
}

/// Collects the items of a snapshot.
#[derive(Default)]
pub struct HeldItems {
    items: Vec<HeldItem>,
    slabs: SlabClasses,
}

impl HeldItems {
    pub fn add(&mut self, record: &Record<'_>) {
        let key_bytes = record.key_bytes.unwrap_or(record.key.len() as u32).min(250) as u8;
        let bytes = item_bytes(key_bytes, record.length.unwrap_or(0));
        self.items.push(HeldItem {
            accessed_s: record.at_ns.unwrap_or(0) / 1_000_000_000,
            // A server with a larger limit holds items that the default refuses.
            charged: self.slabs.charged_bytes(bytes).unwrap_or(bytes),
            was_read: record.succeeded == Some(true),
            expires: record.ttl_s > 0,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The answers, `snapshot_s` after the first time, for some sizes of memory. One key of `sampled` is there.
    pub fn told(mut self, snapshot_s: u64, sampled: u32, sizes: &[u64]) -> Held {
        self.items.sort_by_key(|item| item.accessed_s);
        let factor = f64::from(sampled);
        let sum = |filter: &dyn Fn(&HeldItem) -> bool| {
            let mut amount = Amount::default();
            self.items.iter().filter(|item| filter(item)).for_each(|item| amount.add(item));
            amount.scaled(factor)
        };
        let age_s = |item: &HeldItem| snapshot_s.saturating_sub(item.accessed_s);
        let oldest_s = self.items.first().map_or(0, age_s);
        let idle = |idle_s: u64| Idle {
            idle_s,
            at_least: sum(&|item| !item.was_read && age_s(item) >= idle_s),
            at_most: sum(&|item| age_s(item) >= idle_s),
        };
        let all = sum(&|_| true);
        let given_up = |memory_bytes: u64| {
            let (mut items, mut never_read, mut idle_s) =
                (Amount::default(), Amount::default(), oldest_s);
            for item in &self.items {
                if all.bytes - items.bytes * factor <= memory_bytes as f64 {
                    break;
                }
                items.add(item);
                idle_s = age_s(item);
                if !item.was_read {
                    never_read.add(item);
                }
            }
            let (items, never_read) = (items.scaled(factor), never_read.scaled(factor));
            GivenUp { memory_bytes, items, never_read, idle_s }
        };
        Held {
            items: all,
            never_read: sum(&|item| !item.was_read),
            without_expiry: sum(&|item| !item.expires),
            idle: IDLE_S.into_iter().filter(|idle_s| *idle_s <= oldest_s).map(idle).collect(),
            given_up: sizes.iter().copied().map(given_up).collect(),
        }
    }
}
