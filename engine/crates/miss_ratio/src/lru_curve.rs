//! LRU at many sizes of memory at once, by stack distances (Mattson et al. 1970).
//!
//! The keys are in the order of their last use. What lies behind a key in this order is what a cache must hold to still
//! have it: each item with the chunk that memcached charges for it, and with the weight of the keys that it stands for.
//! Expiry breaks the order of sizes: a smaller cache lost an item, fetched it again, and so has it for longer. So each
//! key has a deadline for each size. One thing is approximate: an item that only larger caches still have, because
//! no client stored it again after it was evicted or had expired, takes room in the order of all.

use std::hint::black_box;

use crate::choice::{ONE, Stand};
use crate::deadlines::{Deadlines, NEVER_S, deadline_s};
use crate::fills::{Fill, Step, Task};
use crate::slabs::{SlabClasses, item_bytes};
use crate::tally::{Sizes, Tallies, Tally};
use crate::weight_tree::WeightTree;

/// The deadline of a size that does not have the item.
const ABSENT: u32 = 0;
/// No deadline: each size has its own.
const MIXED: u32 = NEVER_S - 1;
const FIRST_PLACES: usize = 1 << 10;
/// Places for each key when they are numbered anew.
const PLACES_OF_KEY: usize = 3;

#[derive(Clone, Copy, Default)]
struct Key {
    /// The weight of all that had entered the order up to its place.
    entered: u64,
    /// Its place in the order of use.
    place: u32,
    /// Its memory, without its weight; 0 if it is at no place.
    charged: u32,
    /// Its deadline in all sizes, or `MIXED`. Its place says which sizes lost it by eviction.
    until_s: u32,
    /// How many keys it stands for, in parts of `ONE`.
    weight: u32,
    has_look: bool,
}

/// A curve of LRU.
#[derive(Clone)]
pub struct LruCurve {
    /// In bytes, the smallest first.
    sizes: Vec<u64>,
    tallies: Tallies,
    slabs: SlabClasses,
    /// By the number of a key.
    keys: Vec<Key>,
    /// For each key, a deadline for each size; of keys with `MIXED`.
    until_s: Vec<u32>,
    order: WeightTree,
    /// The weight of all that has entered the order.
    entered: u64,
    /// The key that took each place; it may have left since.
    at_place: Vec<u32>,
    deadlines: Deadlines,
    now_s: u32,
}

impl LruCurve {
    /// A curve with at most 64 sizes in bytes, the smallest first.
    pub fn new(sizes: &[u64]) -> LruCurve {
        LruCurve::for_keys(sizes, 0)
    }

    /// The same with memory for about this number of keys: growing, it would need more for a moment.
    pub fn for_keys(sizes: &[u64], keys: usize) -> LruCurve {
        let order = WeightTree::new((PLACES_OF_KEY * keys).max(FIRST_PLACES));
        LruCurve {
            sizes: sizes.to_vec(),
            tallies: Tallies::new(sizes.len()),
            slabs: SlabClasses::default(),
            keys: Vec::with_capacity(keys),
            until_s: Vec::with_capacity(keys * sizes.len()),
            at_place: Vec::with_capacity(order.places()),
            order,
            entered: 0,
            deadlines: Deadlines::default(),
            now_s: 0,
        }
    }

    /// The counts for each size.
    pub fn tallies(&self) -> Vec<Tally> {
        self.tallies.of_sizes()
    }

    /// Bring the places of these keys near, all at once: one after the other, each would wait for the memory.
    pub fn approach(&self, numbers: impl Iterator<Item = u32>) {
        let near = |number: u32| {
            let key = self.keys.get(number as usize).filter(|key| key.charged > 0);
            key.map_or(0, |key| self.order.near(key.place as usize))
        };
        black_box(numbers.map(near).fold(0, u64::wrapping_add));
    }

    /// Play a step of the key with this number; its reads are counted if `counts`. `Some` for a get: whether it hits in
    /// the largest size. Numbers should be dense; a key stands for the same keys each time.
    pub fn play(&mut self, number: u32, step: &Step, stand: Stand, counts: bool) -> Option<bool> {
        if step.at_s != self.now_s {
            self.now_s = step.at_s;
            self.drop_expired(step.at_s);
        }
        if self.keys.len() <= number as usize {
            self.keys.resize(number as usize + 1, Key::default());
        }
        self.keys[number as usize].weight = stand.weight;
        let lacking = self.lacking(number, step.at_s);
        let until_s = |ttl_s| deadline_s(step.at_s, ttl_s);
        match step.task {
            Task::Get(fill) => {
                if counts {
                    self.tallies.count(step.hash, stand, lacking, step.value_bytes);
                }
                self.get(number, step, fill, lacking);
                return Some(!lacking.has(self.sizes.len() - 1));
            }
            Task::Set(fill) => {
                let until_s = until_s(fill.ttl_s);
                self.set(number, step, fill, lacking, (Some(until_s), until_s));
            }
            Task::Add(fill) => {
                self.set(number, step, fill, lacking, (None, until_s(fill.ttl_s)));
            }
            Task::Replace(fill) => {
                self.set(number, step, fill, lacking, (Some(until_s(fill.ttl_s)), ABSENT));
            }
            Task::Delete => self.forget(number),
            Task::Touch(ttl_s) => {
                self.renew(number, lacking, (Some(until_s(ttl_s)), ABSENT));
                self.use_again(number);
            }
            Task::Use => {
                self.renew(number, lacking, (None, ABSENT));
                self.use_again(number);
            }
        }
        None
    }

    fn get(&mut self, number: u32, step: &Step, fill: Option<Fill>, lacking: Sizes) {
        let until_s = fill.map_or(ABSENT, |fill| deadline_s(step.at_s, fill.ttl_s));
        match fill {
            Some(fill) if self.keys[number as usize].charged == 0 => {
                self.set(number, step, fill, lacking, (None, until_s));
            }
            _ => {
                self.renew(number, lacking, (None, until_s));
                if self.longest_s(number) > step.at_s {
                    self.look_later(number);
                    self.use_again(number);
                } else {
                    self.forget(number);
                }
            }
        }
    }

    /// Store, with a new deadline: in the sizes that have the key (`None`: the old one stays), and in the others.
    fn set(
        &mut self,
        number: u32,
        step: &Step,
        fill: Fill,
        lacking: Sizes,
        until_s: (Option<u32>, u32),
    ) {
        self.renew(number, lacking, until_s);
        let charged = self.slabs.charged_bytes(item_bytes(step.key_bytes, fill.value_bytes));
        // memcached removes what an item that is too large was to replace.
        let Some(charged) = charged.filter(|_| self.longest_s(number) > step.at_s) else {
            return self.forget(number);
        };
        self.leave_place(number);
        self.keys[number as usize].charged = charged;
        self.enter_place(number);
        self.look_later(number);
    }

    /// New deadlines: of the sizes that have the key (`None`: the old one stays), and of those that lack it.
    fn renew(&mut self, number: u32, lacking: Sizes, (having_s, lacking_s): (Option<u32>, u32)) {
        let count = self.sizes.len();
        let key = &mut self.keys[number as usize];
        if key.until_s != MIXED {
            let having_s = having_s.unwrap_or(key.until_s);
            if lacking.is_empty() || lacking == Sizes::first(count) || having_s == lacking_s {
                key.until_s = if lacking.is_empty() { having_s } else { lacking_s };
                return;
            }
            key.until_s = MIXED;
            let end = (number as usize + 1) * count;
            self.until_s.resize(self.until_s.len().max(end), ABSENT);
            self.until_s[end - count..end].fill(having_s);
        }
        let row = &mut self.until_s[number as usize * count..][..count];
        for (size, until_s) in row.iter_mut().enumerate() {
            *until_s = if lacking.has(size) { lacking_s } else { having_s.unwrap_or(*until_s) };
        }
        if row.iter().all(|until_s| *until_s == row[0]) {
            key.until_s = row[0];
        }
    }

    /// The deadlines of a key with `MIXED`.
    fn row(&self, number: u32) -> &[u32] {
        let count = self.sizes.len();
        &self.until_s[number as usize * count..][..count]
    }

    fn longest_s(&self, number: u32) -> u32 {
        match self.keys[number as usize].until_s {
            MIXED => self.row(number).iter().copied().max().unwrap_or(ABSENT),
            until_s => until_s,
        }
    }

    /// The sizes that do not have the key: it expired, or too much was used since.
    fn lacking(&self, number: u32, now_s: u32) -> Sizes {
        let (key, count) = (&self.keys[number as usize], self.sizes.len());
        let expired = match key.until_s {
            MIXED => {
                let ends = self.row(number).iter().enumerate();
                let expired = ends.filter(|(_, until_s)| **until_s <= now_s);
                expired.fold(Sizes::first(0), |sizes, (size, _)| sizes.with(size))
            }
            until_s if until_s <= now_s => return Sizes::first(count),
            _ => Sizes::first(0),
        };
        expired.or(Sizes::first(self.first_size(key)))
    }

    /// The first size that still has the key, by what was used since.
    fn first_size(&self, key: &Key) -> usize {
        if key.charged == 0 {
            return self.sizes.len();
        }
        // What lies behind it has entered since; a key that entered twice counts twice here.
        let most = self.entered - key.entered + u64::from(key.charged);
        if most <= self.sizes[0] {
            return 0;
        }
        let needed = self.order.behind(key.place as usize) + u64::from(key.charged);
        self.sizes.partition_point(|size| *size < needed)
    }

    fn weight_of(&self, key: &Key) -> u64 {
        u64::from(key.charged) * u64::from(key.weight) / u64::from(ONE)
    }

    fn use_again(&mut self, number: u32) {
        if self.keys[number as usize].charged > 0 {
            self.leave_place(number);
            self.enter_place(number);
        }
    }

    fn leave_place(&mut self, number: u32) {
        let key = self.keys[number as usize];
        if key.charged > 0 {
            self.order.subtract(key.place as usize, self.weight_of(&key));
        }
    }

    fn enter_place(&mut self, number: u32) {
        if self.at_place.len() == self.order.places() {
            self.close_gaps(number);
        }
        let place = self.at_place.len();
        self.at_place.push(number);
        let weight = self.weight_of(&self.keys[number as usize]);
        self.order.add(place, weight);
        self.entered += weight;
        let key = &mut self.keys[number as usize];
        (key.place, key.entered) = (place as u32, self.entered);
    }

    /// Number the places anew, without those that no key has. One key is at no place.
    fn close_gaps(&mut self, without: u32) {
        let mut left = std::mem::take(&mut self.at_place);
        let mut place = 0;
        left.retain(|number| {
            let key = &self.keys[*number as usize];
            place += 1;
            *number != without && key.charged > 0 && key.place == place - 1
        });
        // Of two trees at a time, one would be needless memory.
        self.order = WeightTree::default();
        let weights = left.iter().enumerate().map(|(place, number)| {
            self.keys[*number as usize].place = place as u32;
            self.weight_of(&self.keys[*number as usize])
        });
        let places = (PLACES_OF_KEY * left.len()).max(FIRST_PLACES);
        self.order = WeightTree::of(places, weights);
        left.reserve_exact(self.order.places() - left.len());
        self.at_place = left;
    }

    fn forget(&mut self, number: u32) {
        self.leave_place(number);
        let key = &mut self.keys[number as usize];
        (key.charged, key.until_s) = (0, ABSENT);
    }

    fn look_later(&mut self, number: u32) {
        if !self.keys[number as usize].has_look {
            let longest_s = self.longest_s(number);
            self.keys[number as usize].has_look = longest_s != NEVER_S;
            self.deadlines.look_at(longest_s, u64::from(number));
        }
    }

    fn drop_expired(&mut self, now_s: u32) {
        while let Some(numbers) = self.deadlines.due(now_s) {
            for number in numbers {
                let number = number as u32;
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
