//! Which keys are followed: a part of them by their hash, either all requests of a key or no request (SHARDS;
//! Waldspurger et al. 2015), and all of the hottest. Whether a hot key is in a part by chance would move the whole
//! curve.

use crate::hottest::{HottestKey, MOST_HOT};

/// Half of the places stay free, so that a search ends soon.
const PLACES: usize = 2 * MOST_HOT;
/// Bits by hash, which are all near: most keys are not hot, and have no bit.
const BITS: usize = 16 * MOST_HOT;

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
}

impl Choice {
    /// Follow this part of the keys (1: all), and these keys.
    pub fn new(part: f64, hot: &[HottestKey]) -> Choice {
        let all = part >= 1.0;
        let hot = if all { &[][..] } else { hot };
        let mut choice = Choice {
            below: if all { u64::MAX } else { (part * 2f64.powi(64)) as u64 },
            part: part.min(1.0),
            bits: vec![0; BITS / 64],
            hot: vec![0; PLACES],
            numbers: vec![0; PLACES],
            hot_keys: 0,
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

    /// `None`: the key is not followed. Else whether it is one of the hottest.
    #[inline]
    pub fn follows(&self, hash: u64) -> Option<bool> {
        let is_hot = self.hot_number(hash).is_some();
        (is_hot || self.takes(hash)).then_some(is_hot)
    }
}
