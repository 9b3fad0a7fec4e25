//! Keys: how many there are, how often each is asked for, and how many live at the same time.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use cachemark_trace::file::Record;
use foldhash::quality::FixedState;
use serde::Serialize;

use crate::kind::Kind;
use crate::popularity::{Popularity, RankShare, fit_exponent, rank_shares};

/// A number, and its standard error: 0 if all keys were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

/// The known facts of the keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyStatistics {
    /// The part of all keys that was followed: 1 means all.
    pub sampled: f64,
    pub keys: Estimate,
    /// The part of the keys that has one request.
    pub one_hit_wonders: Estimate,
    /// The bytes of all keys and of their last values.
    pub bytes: Estimate,
    /// Keys whose value's size is nowhere in the trace: their values are not in any bytes here.
    pub without_size: Estimate,
    /// The most items that were alive at the same time, and the most bytes: from an item's first request until it
    /// expires or is deleted.
    pub most_live_items: Estimate,
    pub most_live_bytes: Estimate,
    pub popularity: Option<Popularity>,
    pub ranks: Vec<RankShare>,
}

/// The number of new keys of a window, and what lives at its end.
pub type KeysOverTime = (f64, f64);

#[derive(Clone, Copy)]
struct Key {
    requests: u32,
    bytes: u32,
    has_size: bool,
    alive: bool,
    /// In seconds; 0: it does not expire.
    deadline_s: u32,
}

pub(crate) struct KeyTable {
    most: usize,
    hash: FixedState,
    keys: HashMap<u64, Key, FixedState>,
    /// Keys whose hash is shifted to 0 are followed.
    shift: u32,
    items: i64,
    bytes: i64,
    /// Expiries at the end of a second: items and bytes.
    expiring: BTreeMap<u32, (i64, i64)>,
    most_items: f64,
    most_bytes: f64,
}

impl KeyTable {
    pub fn new(most: usize) -> KeyTable {
        KeyTable {
            most,
            hash: FixedState::default(),
            keys: HashMap::default(),
            shift: 0,
            items: 0,
            bytes: 0,
            expiring: BTreeMap::new(),
            most_items: 0.0,
            most_bytes: 0.0,
        }
    }

    /// How many keys one stands for.
    fn weight(&self) -> f64 {
        2f64.powi(self.shift as i32)
    }

    fn follows(&self, hash: u64) -> bool {
        self.shift == 0 || hash >> (64 - self.shift) == 0
    }

    /// Count a request. Returns for how many new keys it stands.
    pub fn add(&mut self, record: &Record<'_>, kind: Kind, key_bytes: u32) -> f64 {
        let now_s = (record.at_ns.unwrap_or(0) / 1_000_000_000) as u32;
        self.expire(now_s);
        let hash = self.hash.hash_one(record.key);
        if !self.follows(hash) {
            return 0.0;
        }
        let before = self.keys.get(&hash).copied();
        let mut key = before.unwrap_or(Key {
            requests: 0,
            bytes: key_bytes,
            has_size: false,
            alive: false,
            deadline_s: 0,
        });
        self.take_off(&key, now_s);
        key.requests = key.requests.saturating_add(record.count);
        let expired = key.deadline_s != 0 && key.deadline_s <= now_s;
        let stored = kind == Kind::Write && record.succeeded != Some(false);
        let found = kind == Kind::Read && record.succeeded != Some(false);
        if let Some(length) = record.length.filter(|_| stored || found) {
            (key.bytes, key.has_size) = (key_bytes + length, true);
        }
        match kind {
            Kind::Write if stored => {
                key.alive = true;
                key.deadline_s =
                    if record.ttl_s == 0 { 0 } else { now_s.saturating_add(record.ttl_s) };
            }
            // Who reads it has it: if the trace says so, or if it does not say that it missed.
            Kind::Read if found => {
                key.alive = true;
                key.deadline_s = if expired { 0 } else { key.deadline_s };
            }
            Kind::Read => key.alive = false,
            Kind::Delete => key.alive = false,
            _ => key.alive &= !expired,
        }
        self.put_on(&key);
        self.keys.insert(hash, key);
        if before.is_some() {
            return 0.0;
        }
        let weight = self.weight();
        self.halve_if_full(now_s);
        weight
    }

    /// Take what a key holds off the sums, if it is still in them.
    fn take_off(&mut self, key: &Key, now_s: u32) {
        if !key.alive || (key.deadline_s != 0 && key.deadline_s <= now_s) {
            return;
        }
        self.items -= 1;
        self.bytes -= i64::from(key.bytes);
        if key.deadline_s != 0
            && let Some(second) = self.expiring.get_mut(&key.deadline_s)
        {
            second.0 -= 1;
            second.1 -= i64::from(key.bytes);
        }
    }

    fn put_on(&mut self, key: &Key) {
        if !key.alive {
            return;
        }
        self.items += 1;
        self.bytes += i64::from(key.bytes);
        if key.deadline_s != 0 {
            let second = self.expiring.entry(key.deadline_s).or_default();
            second.0 += 1;
            second.1 += i64::from(key.bytes);
        }
        let (items, bytes) = self.live();
        self.most_items = self.most_items.max(items);
        self.most_bytes = self.most_bytes.max(bytes);
    }

    fn expire(&mut self, now_s: u32) {
        while let Some(second) = self.expiring.first_entry().filter(|first| *first.key() <= now_s) {
            let (items, bytes) = second.remove();
            self.items -= items;
            self.bytes -= bytes;
        }
    }

    /// Follow half of the keys, if there are too many.
    fn halve_if_full(&mut self, now_s: u32) {
        while self.keys.len() > self.most && self.shift < 63 {
            self.shift += 1;
            let shift = self.shift;
            self.keys.retain(|hash, _| hash >> (64 - shift) == 0);
            (self.items, self.bytes) = (0, 0);
            self.expiring.clear();
            let (most_items, most_bytes) = (self.most_items, self.most_bytes);
            let left: Vec<Key> = self.keys.values().copied().collect();
            let lives = |key: &&Key| key.alive && (key.deadline_s == 0 || key.deadline_s > now_s);
            left.iter().filter(lives).for_each(|key| self.put_on(key));
            (self.most_items, self.most_bytes) = (most_items, most_bytes);
        }
    }

    /// Items that live, and their bytes.
    pub fn live(&self) -> (f64, f64) {
        (self.items as f64 * self.weight(), self.bytes as f64 * self.weight())
    }

    /// The sum of what all keys have of something, with the error of a part that was chosen by a hash.
    fn sum(&self, of: impl Fn(&Key) -> f64) -> Estimate {
        let weight = self.weight();
        let (sum, squares) = self
            .keys
            .values()
            .map(of)
            .fold((0.0, 0.0), |(sum, squares), each| (sum + each, squares + each * each));
        Estimate { value: sum * weight, error: (weight * (weight - 1.0) * squares).sqrt() }
    }

    pub fn statistics(&self, requests: u64) -> KeyStatistics {
        let mut counts: Vec<u32> = self.keys.values().map(|key| key.requests).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let keys = self.sum(|_| 1.0);
        let followed = self.keys.len().max(1) as f64;
        let once = counts.iter().filter(|count| **count == 1).count() as f64 / followed;
        let is_part = if self.shift == 0 { 0.0 } else { 1.0 };
        let live = |most: f64, all: Estimate| Estimate {
            value: most,
            error: if all.value > 0.0 { most * all.error / all.value } else { 0.0 },
        };
        let bytes = self.sum(|key| f64::from(key.bytes));
        KeyStatistics {
            sampled: 1.0 / self.weight(),
            keys,
            one_hit_wonders: Estimate {
                value: once,
                error: is_part * (once * (1.0 - once) / followed).sqrt(),
            },
            bytes,
            without_size: self.sum(|key| f64::from(u8::from(!key.has_size))),
            most_live_items: live(self.most_items, keys),
            most_live_bytes: live(self.most_bytes, bytes),
            popularity: fit_exponent(&counts),
            ranks: rank_shares(&counts, self.weight(), requests),
        }
    }
}
