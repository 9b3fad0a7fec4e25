//! The crawler, which removes items that have expired.
//!
//! After each crawl of a class, memcached looks for how many minutes it takes until more than a hundredth of the items
//! that expire has expired, and comes nearer to this wait by a minute.

use std::collections::BTreeMap;

use super::Memcached;
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

impl Memcached {
    /// The item expires then.
    pub(super) fn expire_at(&mut self, number: u32, until_s: u32) {
        self.forget_expiry(number);
        self.items[number as usize].until_s = until_s;
        if until_s != NEVER_S {
            let crawl = &mut self.classes[self.items[number as usize].class as usize].crawl;
            *crawl.expiring.entry(until_s / MINUTE_S).or_default() += 1;
            crawl.expiring_items += 1;
        }
        self.look_later(number);
    }

    pub(super) fn forget_expiry(&mut self, number: u32) {
        let item = self.items[number as usize];
        if item.until_s == NEVER_S {
            return;
        }
        let crawl = &mut self.classes[item.class as usize].crawl;
        crawl.expiring_items -= 1;
        let minute = item.until_s / MINUTE_S;
        let left = crawl.expiring.get_mut(&minute).expect("the item was counted");
        *left -= 1;
        if *left == 0 {
            crawl.expiring.remove(&minute);
        }
    }

    fn look_later(&mut self, number: u32) {
        let item = &mut self.items[number as usize];
        if !item.has_look && item.until_s != NEVER_S {
            item.has_look = true;
            self.deadlines.look_at(item.until_s, item.hash);
        }
    }

    /// Items that have expired wait for the crawler.
    pub(super) fn note_expired(&mut self) {
        while let Some(hashes) = self.deadlines.due(self.second) {
            for hash in hashes {
                let Some(&number) = self.numbers.get(&hash) else { continue };
                self.items[number as usize].has_look = false;
                if self.has_expired(number) {
                    let class = self.items[number as usize].class as usize;
                    self.classes[class].crawl.expired.push(hash);
                } else {
                    self.look_later(number);
                }
            }
        }
    }

    pub(super) fn crawl(&mut self, class: usize) {
        if self.second <= self.classes[class].crawl.next_s {
            return;
        }
        for hash in std::mem::take(&mut self.classes[class].crawl.expired) {
            self.found(hash);
        }
        let crawl = &mut self.classes[class].crawl;
        crawl.wait_s = crawl.next_wait_s(self.second);
        crawl.next_s = self.second + crawl.wait_s + LEAST_WAIT_S;
    }
}
