//! Keys in the order of their last use, and a law that draws by this order.
//!
//! The distance of a use is the number of other keys that were used since the key's last one: an LRU list that holds
//! more keys than this finds it. So operations with the same distances have the same LRU hit ratios.

use std::str::FromStr;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::error::{WorkloadError, invalid};
use super::integer_distribution::{IntegerDistribution, bytes};

const NOWHERE: u32 = u32::MAX;
const SYNTAX: &str = "write the share of operations that use a new key, and the distances of the others: \
                      recency:0.1:0..9=2,10..500=1, behind a / for writes if they differ";

/// Keys from 0 on in the order of their last use. Each has a slot, later uses have higher ones.
#[derive(Clone, Debug)]
pub struct Recency {
    slot_of: Vec<u32>,
    key_at: Vec<u32>,
    /// A Fenwick tree of the slots in use.
    sums: Vec<u32>,
    next: usize,
    keys: u32,
}

impl Recency {
    /// An order of at most `count` keys, none of them used.
    pub fn new(count: u32) -> Recency {
        let slots = 2 * count as usize + 2;
        Recency {
            slot_of: vec![NOWHERE; count as usize],
            key_at: vec![NOWHERE; slots],
            sums: vec![0; slots + 1],
            next: 0,
            keys: 0,
        }
    }

    /// The number of used keys.
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// Use a key. Returns its distance; `None`: it is new.
    pub fn touch(&mut self, key: u32) -> Option<u32> {
        if self.next == self.key_at.len() {
            self.compact();
        }
        let slot = self.slot_of[key as usize];
        let distance = (slot != NOWHERE).then(|| {
            let distance = self.keys - self.used_up_to(slot as usize);
            self.change(slot as usize, u32::MAX);
            self.key_at[slot as usize] = NOWHERE;
            self.keys -= 1;
            distance
        });
        self.place(key);
        distance
    }

    /// The key at a distance; `None`: fewer keys were used.
    pub fn key_at(&self, distance: u32) -> Option<u32> {
        let mut wanted = self.keys.checked_sub(distance).filter(|wanted| *wanted > 0)?;
        let (mut slot, mut step) = (0, self.key_at.len().next_power_of_two());
        while step > 0 {
            if let Some(sum) = self.sums.get(slot + step).filter(|sum| **sum < wanted) {
                wanted -= sum;
                slot += step;
            }
            step /= 2;
        }
        Some(self.key_at[slot])
    }

    fn place(&mut self, key: u32) {
        self.slot_of[key as usize] = self.next as u32;
        self.key_at[self.next] = key;
        self.change(self.next, 1);
        self.next += 1;
        self.keys += 1;
    }

    fn compact(&mut self) {
        let kept: Vec<u32> = self.key_at.iter().copied().filter(|key| *key != NOWHERE).collect();
        self.key_at.fill(NOWHERE);
        self.sums.fill(0);
        (self.next, self.keys) = (0, 0);
        kept.into_iter().for_each(|key| self.place(key));
    }

    /// Add to a slot; `u32::MAX` takes 1 away.
    fn change(&mut self, slot: usize, by: u32) {
        let mut at = slot + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    fn used_up_to(&self, slot: usize) -> u32 {
        let (mut at, mut sum) = (slot + 1, 0);
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }
}

/// How far back operations go.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    /// The share of operations that use a new key.
    pub new: f64,
    pub known: IntegerDistribution,
}

impl FromStr for Distances {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Distances, WorkloadError> {
        let (new, known) = text.split_once(':').unwrap_or((text, ""));
        match (new.parse(), IntegerDistribution::parse(known, bytes)) {
            (Ok(new), Ok(known)) if (0.0..=1.0).contains(&new) => Ok(Distances { new, known }),
            _ => invalid(format!("{text:?}: {SYNTAX}")),
        }
    }
}

impl Distances {
    /// Draw a key. If all were used, the one whose last use is the longest ago is the next new one.
    pub(crate) fn key(&self, order: &mut Recency, count: u32, rng: &mut ChaCha8Rng) -> u32 {
        let known = (!rng.random_bool(self.new))
            .then(|| self.known.draw(rng.random(), count))
            .and_then(|distance| order.key_at(distance));
        let unused = (order.keys() < count).then(|| order.keys());
        let oldest = || order.key_at(order.keys().saturating_sub(1));
        let key = known.or(unused).or_else(oldest).unwrap_or(0);
        order.touch(key);
        key
    }
}
