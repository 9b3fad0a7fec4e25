//! The crawler, which removes items that have expired.

use super::Memcached;
use crate::deadlines::NEVER_S;

impl Memcached {
    /// The item expires then.
    pub(super) fn expire_at(&mut self, number: u32, until_s: u32) {
        let item = &mut self.items[number as usize];
        let crawl = &mut self.classes[item.class as usize].crawl;
        crawl.forget(item.until_s);
        crawl.expect(until_s);
        item.until_s = until_s;
        self.look_later(number);
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
                    self.classes[class].crawl.note_expired(hash);
                } else {
                    self.look_later(number);
                }
            }
        }
    }

    pub(super) fn crawl(&mut self, class: usize) {
        let Some(expired) = self.classes[class].crawl.begin(self.second) else { return };
        for hash in expired {
            self.found(hash);
        }
        self.classes[class].crawl.end(self.second);
    }
}
