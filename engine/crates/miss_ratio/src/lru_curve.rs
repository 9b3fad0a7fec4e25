//! LRU at many sizes of memory at once, by stack distances (Mattson et al. 1970).
//!
//! The keys are in the order of their last use. What lies behind a key in this order is what a cache must hold to still
//! have it: each item with the chunk that memcached charges for it, and with the weight of the keys that it stands for.
//! Expiry breaks the order of sizes: a smaller cache lost an item, fetched it again, and so has it for longer. So each
//! key has a deadline for each size. One thing is approximate: an item that only larger caches still have, because
//! no client stored it again after it was evicted or had expired, takes room in the order of all.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::deadlines::{Deadlines, deadline_s};
use crate::fills::{Fill, Step, Task};
use crate::slabs::{SlabClasses, item_bytes};
use crate::tally::Tally;
use crate::weight_tree::WeightTree;

/// The deadline of a size that does not have the item.
const ABSENT: u32 = 0;
const FIRST_PLACES: usize = 1 << 10;

#[derive(Clone, Copy, Default)]
struct Key {
    hash: u64,
    /// Its place in the order of use.
    place: u32,
    /// Its memory, without its weight; 0 if it is at no place.
    charged: u32,
    has_look: bool,
    is_hot: bool,
}

/// A curve of LRU.
#[derive(Clone)]
pub struct LruCurve {
    /// In bytes, the smallest first.
    sizes: Vec<u64>,
    tallies: Vec<Tally>,
    /// How many keys stand behind each one that is no hot key.
    weight: f64,
    slabs: SlabClasses,
    numbers: HashMap<u64, u32, FixedState>,
    keys: Vec<Key>,
    /// For each key, a deadline for each size.
    until_s: Vec<u32>,
    free: Vec<u32>,
    order: WeightTree,
    /// The key at each place.
    at_place: Vec<u32>,
    deadlines: Deadlines,
}

impl LruCurve {
    /// A curve with these sizes in bytes, the smallest first. Each key stands for `weight` keys, but for the hottest.
    pub fn new(sizes: &[u64], weight: f64) -> LruCurve {
        LruCurve {
            sizes: sizes.to_vec(),
            tallies: vec![Tally::default(); sizes.len()],
            weight,
            slabs: SlabClasses::default(),
            numbers: HashMap::default(),
            keys: Vec::new(),
            until_s: Vec::new(),
            free: Vec::new(),
            order: WeightTree::new(FIRST_PLACES),
            at_place: Vec::new(),
            deadlines: Deadlines::default(),
        }
    }

    /// The counts for each size.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Play a step; its reads are counted if `counts`. `Some` for a get: whether it hits in the largest size.
    pub fn play(&mut self, step: &Step, is_hot: bool, counts: bool) -> Option<bool> {
        self.drop_expired(step.at_s);
        let number = self.numbers.get(&step.hash).copied();
        match step.task {
            Task::Get(fill) => return Some(self.get(step, number, fill, is_hot, counts)),
            Task::Set(fill) => self.set(step, number, fill, is_hot, |_| true),
            Task::Add(fill) => self.set(step, number, fill, is_hot, |has| !has),
            Task::Replace(fill) => self.set(step, number, fill, is_hot, |has| has),
            Task::Delete => {
                if let Some(number) = number {
                    self.forget(number);
                }
            }
            Task::Touch(ttl_s) => {
                if let Some(number) = number {
                    let first = self.first_size(number);
                    self.refresh(number, first, step.at_s, ttl_s, |has| has);
                    self.use_again(number);
                }
            }
            Task::Use => {
                if let Some(number) = number {
                    let first = self.first_size(number);
                    self.lose_below(number, first);
                    self.use_again(number);
                }
            }
        }
        None
    }

    fn get(
        &mut self,
        step: &Step,
        number: Option<u32>,
        fill: Option<Fill>,
        is_hot: bool,
        counts: bool,
    ) -> bool {
        let Some(number) = number else {
            if counts {
                let count =
                    |tally: &mut Tally| tally.count(step.hash, is_hot, true, step.value_bytes);
                self.tallies.iter_mut().for_each(count);
            }
            if let Some(fill) = fill {
                self.set(step, None, fill, is_hot, |_| true);
            }
            return false;
        };
        let first = self.first_size(number);
        let count = self.sizes.len();
        let until = &mut self.until_s[number as usize * count..][..count];
        let mut hit = false;
        for (size, until_s) in until.iter_mut().enumerate() {
            let missed = size < first || *until_s <= step.at_s;
            hit = !missed;
            if counts {
                self.tallies[size].count(step.hash, is_hot, missed, step.value_bytes);
            }
            if missed {
                *until_s = fill.map_or(ABSENT, |fill| deadline_s(step.at_s, fill.ttl_s));
            }
        }
        self.look_later(number);
        if fill.is_some() || self.longest_s(number) > step.at_s {
            self.use_again(number);
        } else {
            self.forget(number);
        }
        hit
    }

    /// Store in the sizes that `stores` says, from whether they have the key.
    fn set(
        &mut self,
        step: &Step,
        number: Option<u32>,
        fill: Fill,
        is_hot: bool,
        stores: impl Fn(bool) -> bool,
    ) {
        if number.is_none() && !stores(false) {
            return;
        }
        let Some(charged) = self.slabs.charged_bytes(item_bytes(step.key_bytes, fill.value_bytes))
        else {
            // memcached removes what an item that is too large was to replace.
            return number.map_or((), |number| self.forget(number));
        };
        let number = number.unwrap_or_else(|| self.new_key(step.hash, is_hot));
        let first = self.first_size(number);
        self.refresh(number, first, step.at_s, fill.ttl_s, stores);
        if self.longest_s(number) <= step.at_s {
            return self.forget(number);
        }
        self.leave_place(number);
        self.keys[number as usize].charged = charged;
        self.enter_place(number);
        self.look_later(number);
    }

    /// A new deadline for the sizes that `stores` says.
    fn refresh(
        &mut self,
        number: u32,
        first: usize,
        now_s: u32,
        ttl_s: u32,
        stores: impl Fn(bool) -> bool,
    ) {
        let count = self.sizes.len();
        let until = &mut self.until_s[number as usize * count..][..count];
        for (size, until_s) in until.iter_mut().enumerate() {
            let has = size >= first && *until_s > now_s;
            if stores(has) {
                *until_s = deadline_s(now_s, ttl_s);
            } else if !has {
                *until_s = ABSENT;
            }
        }
    }

    /// Sizes that lost a key must not have it again when it is used.
    fn lose_below(&mut self, number: u32, first: usize) {
        self.until_s[number as usize * self.sizes.len()..][..first].fill(ABSENT);
    }

    fn longest_s(&self, number: u32) -> u32 {
        let count = self.sizes.len();
        self.until_s[number as usize * count..][..count].iter().copied().max().unwrap_or(ABSENT)
    }

    /// The first size that still has the key, by what was used since.
    fn first_size(&self, number: u32) -> usize {
        let key = self.keys[number as usize];
        if key.charged == 0 {
            return self.sizes.len();
        }
        let needed = self.order.behind(key.place as usize) + u64::from(key.charged);
        self.sizes.partition_point(|size| *size < needed)
    }

    fn weight_of(&self, key: &Key) -> u64 {
        let weight = if key.is_hot { 1.0 } else { self.weight };
        (f64::from(key.charged) * weight).round() as u64
    }

    fn use_again(&mut self, number: u32) {
        self.leave_place(number);
        self.enter_place(number);
    }

    fn leave_place(&mut self, number: u32) {
        let key = self.keys[number as usize];
        if key.charged > 0 {
            self.order.subtract(key.place as usize, self.weight_of(&key));
            self.at_place[key.place as usize] = u32::MAX;
        }
    }

    fn enter_place(&mut self, number: u32) {
        if self.at_place.len() == self.order.places() {
            self.close_gaps();
        }
        let place = self.at_place.len();
        self.at_place.push(number);
        self.keys[number as usize].place = place as u32;
        let weight = self.weight_of(&self.keys[number as usize]);
        self.order.add(place, weight);
    }

    /// Number the places anew, without those that no key has; with twice as many as there are keys.
    fn close_gaps(&mut self) {
        let mut left = std::mem::take(&mut self.at_place);
        left.retain(|number| *number != u32::MAX);
        self.order = WeightTree::new((2 * left.len()).max(FIRST_PLACES));
        for (place, number) in left.iter().enumerate() {
            self.keys[*number as usize].place = place as u32;
            let weight = self.weight_of(&self.keys[*number as usize]);
            self.order.add(place, weight);
        }
        self.at_place = left;
    }

    fn new_key(&mut self, hash: u64, is_hot: bool) -> u32 {
        let key = Key { hash, is_hot, ..Key::default() };
        let count = self.sizes.len();
        let number = match self.free.pop() {
            Some(number) => {
                self.keys[number as usize] = key;
                self.until_s[number as usize * count..][..count].fill(ABSENT);
                number
            }
            None => {
                self.keys.push(key);
                self.until_s.resize(self.keys.len() * count, ABSENT);
                self.keys.len() as u32 - 1
            }
        };
        self.numbers.insert(hash, number);
        number
    }

    fn forget(&mut self, number: u32) {
        self.leave_place(number);
        self.numbers.remove(&self.keys[number as usize].hash);
        self.keys[number as usize].charged = 0;
        self.free.push(number);
    }

    fn look_later(&mut self, number: u32) {
        if !self.keys[number as usize].has_look {
            let longest_s = self.longest_s(number);
            let key = &mut self.keys[number as usize];
            key.has_look = longest_s != crate::deadlines::NEVER_S;
            self.deadlines.look_at(longest_s, key.hash);
        }
    }

    fn drop_expired(&mut self, now_s: u32) {
        while let Some(hashes) = self.deadlines.due(now_s) {
            for hash in hashes {
                let Some(&number) = self.numbers.get(&hash) else { continue };
                self.keys[number as usize].has_look = false;
                if self.longest_s(number) <= now_s {
                    self.forget(number);
                } else {
                    self.look_later(number);
                }
            }
        }
    }
}
