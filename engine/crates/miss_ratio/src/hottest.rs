//! A first pass over a trace: how many keys there are, and which are so hot that a part must not leave them to chance.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use crate::request::{NO_SIZE, Request};
use crate::slabs::{SlabClasses, item_bytes};

/// The most keys that are followed whatever the part.
pub(crate) const MOST_HOT: usize = 1 << 13;

/// A key with this part of all requests is hot.
const HOT_PART: f64 = 1.0 / 20_000.0;
/// Counts that are this part of all requests too low are forgotten (lossy counting; Manku, Motwani 2002).
const FORGOTTEN_PART: f64 = HOT_PART / 4.0;
const MOST_FOLLOWED: usize = 1 << 14;
/// If all keys were used equally, this part of the memory would be used anew between two requests of a key that is never
/// evicted.
const NEVER_EVICTED: f64 = 1.0 / 8.0;
/// The first requests are all counted by key; then one of some, at places that no period of a trace shares, with their
/// weight. It only decides which keys are followed whatever the part.
const ALL_COUNTED: u64 = 1 << 20;
const COUNTED_ONE_OF_LOG2: u32 = 4;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys are at places by the highest bits of their hashes.
pub(crate) const PLACES_LOG2: u32 = 21;

#[inline]
pub(crate) fn place_of(hash: u64) -> usize {
    (hash >> (64 - PLACES_LOG2)) as usize
}

/// The known facts of a trace after the first pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Population {
    pub requests: u64,
    /// About how many keys there are.
    pub keys: f64,
    pub last_s: u32,
    /// Keys with more than a 20,000th of all requests, the hottest first, as far as they can all be followed.
    pub hot: Vec<HottestKey>,
    /// The mean that memcached charges for an item, of the requests that have a size.
    pub mean_charged_bytes: f64,
    /// The requests of all keys at a place, at most 255; empty if they were not counted.
    pub requests_at: Vec<u8>,
}

/// A key, its part of all requests, and what memcached charges for its item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HottestKey {
    pub hash: u64,
    pub share: f64,
    pub charged_bytes: u32,
}

impl Population {
    /// The hot keys that a cache with this memory, in bytes, never evicts.
    pub fn lasting(&self, memory: f64) -> Vec<HottestKey> {
        let least_share = self.mean_charged_bytes / (memory * NEVER_EVICTED);
        self.hot.iter().copied().filter(|key| key.share >= least_share).collect()
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    requests: u32,
    charged_bytes: u32,
}

/// Collects it.
#[derive(Default)]
pub struct Hottest {
    requests: u64,
    requests_at: Vec<u8>,
    last_s: u32,
    counts: HashMap<u64, Count, FixedState>,
    sized: u64,
    sized_bytes: u64,
    slabs: SlabClasses,
    forgotten_at: u64,
    keys: HashSet<u64, FixedState>,
    shift: u32,
}

impl Hottest {
    #[inline]
    pub fn add(&mut self, request: &Request) {
        let hash = request.hash;
        self.requests += 1;
        self.last_s = self.last_s.max(request.at_s);
        if self.requests_at.is_empty() {
            self.requests_at = vec![0; 1 << PLACES_LOG2];
        }
        let at = &mut self.requests_at[place_of(hash)];
        *at = at.saturating_add(1);
        let requests_at = *at;
        if self.requests <= ALL_COUNTED {
            self.count(request, 1, requests_at);
        } else if self.requests.wrapping_mul(GOLDEN) >> (64 - COUNTED_ONE_OF_LOG2) == 0 {
            self.count(request, 1 << COUNTED_ONE_OF_LOG2, requests_at);
        }
        if self.shift == 0 || hash >> (64 - self.shift) == 0 {
            self.keys.insert(hash);
            while self.keys.len() > MOST_FOLLOWED {
                self.shift += 1;
                let shift = self.shift;
                self.keys.retain(|hash| hash >> (64 - shift) == 0);
            }
        }
    }

    /// `requests_at`: of the key's place so far, at most 255. A key is counted from when they are more than may be
    /// forgotten: it had no more, and few keys need memory at a time.
    fn count(&mut self, request: &Request, weight: u32, requests_at: u8) {
        let charged_bytes = (request.value_bytes != NO_SIZE).then(|| {
            let bytes = item_bytes(request.key_bytes, request.value_bytes);
            self.slabs.charged_bytes(bytes).unwrap_or(0)
        });
        if let Some(bytes) = charged_bytes {
            self.sized += u64::from(weight);
            self.sized_bytes += u64::from(weight) * u64::from(bytes);
        }
        let forgotten = self.requests as f64 * FORGOTTEN_PART;
        if requests_at == u8::MAX || f64::from(requests_at) > forgotten {
            let count = self.counts.entry(request.hash).or_default();
            count.requests = count.requests.saturating_add(weight);
            count.charged_bytes = charged_bytes.unwrap_or(count.charged_bytes);
        }
        let step = (1.0 / FORGOTTEN_PART) as u64;
        if self.requests - self.forgotten_at >= step {
            self.forgotten_at = self.requests;
            self.counts.retain(|_, count| {
                count.requests -= 1;
                count.requests > 0
            });
        }
    }

    pub fn population(self) -> Population {
        let all = self.requests as f64;
        let hot_key = |(hash, count): (&u64, &Count)| HottestKey {
            hash: *hash,
            share: f64::from(count.requests) / all,
            charged_bytes: count.charged_bytes,
        };
        let is_hot = |key: &HottestKey| key.share >= HOT_PART - FORGOTTEN_PART;
        let mut hot: Vec<_> = self.counts.iter().map(hot_key).filter(is_hot).collect();
        hot.sort_unstable_by(|a, b| b.share.total_cmp(&a.share).then(a.hash.cmp(&b.hash)));
        hot.truncate(MOST_HOT);
        Population {
            requests: self.requests,
            keys: self.keys.len() as f64 * 2f64.powi(self.shift as i32),
            last_s: self.last_s,
            hot,
            mean_charged_bytes: self.sized_bytes as f64 / self.sized.max(1) as f64,
            requests_at: self.requests_at,
        }
    }
}
