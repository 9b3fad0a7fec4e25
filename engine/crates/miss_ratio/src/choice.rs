//! Which keys are followed: a part of them by their hash, either all requests of a key or no request (SHARDS;
//! Waldspurger et al. 2015), and all of the hottest. Whether a hot key is in a part by chance would move the whole
//! curve.
//!
//! Keys with equally many requests behave alike, and a part has more or less of them by chance. So each followed key
//! stands for the keys of the trace with as many requests (post-stratification; Cochran, Sampling Techniques, 5A.9).
//! Counting each key would take much memory: keys with similar hashes are counted together.

use crate::hottest::{HottestKey, MOST_HOT, PLACES_LOG2, place_of};

/// Half of the places stay free, so that a search ends soon.
const PLACES: usize = 2 * MOST_HOT;
/// Bits by hash, which are all near: most keys are not hot, and have no bit.
const BITS: usize = 16 * MOST_HOT;

/// The fewest counts of requests that a part should have for a weight of their own.
const LEAST_PLACES: f64 = 8.0;
/// A part with fewer counts gives all its keys the same weight.
const LEAST_TAKEN: usize = 1 << 12;
/// A place has 0 to 255 requests.
const COUNTS: usize = 1 << u8::BITS;
/// The weight of one key.
pub(crate) const ONE: u32 = 1 << 10;

/// How a followed key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    pub is_hot: bool,
    /// For how many keys it stands, in parts of `ONE`.
    pub(crate) weight: u32,
}

impl Stand {
    pub(crate) const HOT: Stand = Stand { is_hot: true, weight: ONE };

    /// A key, and for how many keys it stands.
    pub fn for_keys(is_hot: bool, keys: f64) -> Stand {
        Stand { is_hot, weight: (keys * f64::from(ONE)).round() as u32 }
    }

    /// For how many keys it stands.
    pub fn keys(self) -> f64 {
        f64::from(self.weight) / f64::from(ONE)
    }
}

/// Chooses keys.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Keys whose hash is lower are followed.
    below: u64,
    part: f64,
    /// A bit of each of the hottest keys.
    bits: Vec<u64>,
    /// The hottest keys, each at one of the places that its hash has.
    hot: Vec<u64>,
    /// The number of the hot key at each place, in the order of their shares.
    numbers: Vec<u32>,
    hot_keys: usize,
    /// The weight of keys by the requests of their place.
    weights: [u32; COUNTS],
    /// Of the places whose keys are followed.
    requests_at: Vec<u8>,
}

impl Choice {
    /// Follow this part of the keys (1: all), and these keys. `requests_at`: what the population knows.
    pub fn new(part: f64, hot: &[HottestKey], requests_at: &[u8]) -> Choice {
        let all = part >= 1.0;
        let (part, hot) = if all { (1.0, &[][..]) } else { (part, hot) };
        let taken = (part * (1u64 << PLACES_LOG2) as f64).round() as usize;
        let is_weighed = !all && !requests_at.is_empty() && taken >= LEAST_TAKEN;
        let mut choice = Choice {
            below: match is_weighed {
                true => u64::MAX >> PLACES_LOG2 | ((taken as u64 - 1) << (64 - PLACES_LOG2)),
                false => (part * 2f64.powi(64)) as u64,
            },
            part,
            bits: vec![0; BITS / 64],
            hot: vec![0; PLACES],
            numbers: vec![0; PLACES],
            hot_keys: 0,
            weights: match is_weighed {
                true => weights(part, taken, requests_at),
                false => [Stand::for_keys(false, 1.0 / part).weight; COUNTS],
            },
            requests_at: if is_weighed { requests_at[..taken].to_vec() } else { Vec::new() },
        };
        for hash in hot.iter().map(|key| key.hash).filter(|hash| *hash != 0).take(MOST_HOT) {
            let mut place = Choice::place(hash);
            while choice.hot[place] != 0 {
                place = (place + 1) % PLACES;
            }
            choice.bits[Choice::bit(hash) / 64] |= 1 << (Choice::bit(hash) % 64);
            choice.hot[place] = hash;
            choice.numbers[place] = choice.hot_keys as u32;
            choice.hot_keys += 1;
        }
        choice
    }

    /// The part of the keys that is followed, besides the hottest.
    pub fn part(&self) -> f64 {
        self.part
    }

    pub fn hot_keys(&self) -> usize {
        self.hot_keys
    }

    #[inline]
    fn place(hash: u64) -> usize {
        // Not the highest bits, which choose keys.
        (hash >> 20) as usize % PLACES
    }

    #[inline]
    fn bit(hash: u64) -> usize {
        (hash >> 20) as usize % BITS
    }

    /// The number of a hot key.
    #[inline]
    pub(crate) fn hot_number(&self, hash: u64) -> Option<u32> {
        let bit = Choice::bit(hash);
        if self.bits[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mut place = Choice::place(hash);
        loop {
            let at = self.hot[place];
            if at == hash || at == 0 {
                return (at != 0).then(|| self.numbers[place]);
            }
            place = (place + 1) % PLACES;
        }
    }

    /// Whether a key that is not hot is in the part.
    #[inline]
    pub(crate) fn takes(&self, hash: u64) -> bool {
        hash <= self.below
    }

    /// `None`: the key is not followed.
    #[inline]
    pub fn follows(&self, hash: u64) -> Option<Stand> {
        if self.hot_number(hash).is_some() {
            return Some(Stand::HOT);
        }
        self.takes(hash).then(|| self.stand(hash))
    }

    /// How a key counts that is followed and not hot.
    #[inline]
    pub(crate) fn stand(&self, hash: u64) -> Stand {
        let requests = self.requests_at.get(place_of(hash)).copied().unwrap_or(0);
        Stand { is_hot: false, weight: self.weights[usize::from(requests)] }
    }
}

/// The weights of keys by the requests of their places, of which the first ones are taken.
fn weights(part: f64, taken: usize, requests_at: &[u8]) -> [u32; COUNTS] {
    let mut places = [(0u32, 0u32); COUNTS];
    for (place, requests) in requests_at.iter().enumerate() {
        let (all, own) = &mut places[*requests as usize];
        *all += 1;
        *own += u32::from(place < taken);
    }
    let is_enough = |places: u32| f64::from(places) * part >= LEAST_PLACES;
    let mut left: u32 = places[1..].iter().map(|(all, _)| all).sum();
    let (mut weights, mut done, mut sums) = ([0; COUNTS], 0, (0, 0));
    for (requests, (all, own)) in places.into_iter().enumerate().skip(1) {
        sums = (sums.0 + all, sums.1 + own);
        left -= all;
        if requests == COUNTS - 1 || is_enough(sums.0) && is_enough(left) && sums.1 > 0 {
            let keys = if sums.1 == 0 { 1.0 / part } else { f64::from(sums.0) / f64::from(sums.1) };
            weights[done..=requests].fill(Stand::for_keys(false, keys).weight);
            (done, sums) = (requests + 1, (0, 0));
        }
    }
    weights
}
