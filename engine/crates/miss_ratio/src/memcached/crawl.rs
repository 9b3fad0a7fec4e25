//! What the crawler knows of a class, and when it comes.
//!
//! After each crawl of a class, memcached looks for how many minutes it takes until more than a hundredth of the items
//! that expire has expired, and comes nearer to this wait by a minute.

use std::collections::BTreeMap;

use crate::deadlines::NEVER_S;

const MINUTE_S: u32 = 60;
/// Minutes that it looks ahead.
const MINUTES: u32 = 60;
const LEAST_WAIT_S: u32 = 5;
/// The first crawl is at the start, finds nothing, and so makes the next one come late.
const FIRST_WAIT_S: u32 = MINUTE_S;

/// The crawler's facts of a class.
#[derive(Clone)]
pub(super) struct Crawl {
    wait_s: u32,
    next_s: u32,
    /// Items that expire, by the minute.
    expiring: BTreeMap<u32, u64>,
    expiring_items: u64,
    /// Keys whose items have expired.
    expired: Vec<u64>,
}

impl Default for Crawl {
    fn default() -> Crawl {
        Crawl {
            wait_s: FIRST_WAIT_S,
            next_s: FIRST_WAIT_S + LEAST_WAIT_S,
            expiring: BTreeMap::new(),
            expiring_items: 0,
            expired: Vec::new(),
        }
    }
}

impl Crawl {
    /// An item expires then.
    pub(super) fn expect(&mut self, until_s: u32) {
        if until_s != NEVER_S {
            *self.expiring.entry(until_s / MINUTE_S).or_default() += 1;
            self.expiring_items += 1;
        }
    }

    /// Such an item does so no more.
    pub(super) fn forget(&mut self, until_s: u32) {
        if until_s == NEVER_S {
            return;
        }
        self.expiring_items -= 1;
        let minute = until_s / MINUTE_S;
        let left = self.expiring.get_mut(&minute).expect("the item was counted");
        *left -= 1;
        if *left == 0 {
            self.expiring.remove(&minute);
        }
    }

    /// The item of this key waits for the crawler.
    pub(super) fn note_expired(&mut self, hash: u64) {
        self.expired.push(hash);
    }

    /// The keys of the items that it removes, if it comes now.
    pub(super) fn begin(&mut self, now_s: u32) -> Option<Vec<u64>> {
        (now_s > self.next_s).then(|| std::mem::take(&mut self.expired))
    }

    /// The items are removed: plan the next crawl.
    pub(super) fn end(&mut self, now_s: u32) {
        self.wait_s = self.next_wait_s(now_s);
        self.next_s = now_s + self.wait_s + LEAST_WAIT_S;
    }

    fn next_wait_s(&self, now_s: u32) -> u32 {
        let first = now_s / MINUTE_S;
        let enough = self.expiring_items / 100 + 1;
        let mut available = 0;
        let found = self.expiring.range(first..first + MINUTES).find(|(_, items)| {
            available += **items;
            available > enough
        });
        let wait_s = match found {
            Some((minute, _)) if self.wait_s < (minute - first) * MINUTE_S => {
                self.wait_s + MINUTE_S
            }
            Some(_) => self.wait_s.saturating_sub(MINUTE_S),
            None if available == 0 => self.wait_s + MINUTE_S,
            None => self.wait_s,
        };
        wait_s.min(MINUTES * MINUTE_S)
    }
}
