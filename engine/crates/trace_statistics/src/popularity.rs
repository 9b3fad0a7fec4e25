//! How unequal keys are: the exponent of a Zipf law, and what the most popular keys take.
//!
//! If the key of rank r gets requests in proportion to r^-s, the counts of keys have the tail
//! P(count ≥ c) ∝ c^(-1/s). The exponent of this tail is estimated by maximum likelihood (Hill 1975; Clauset, Shalizi,
//! Newman 2009, for the half at the lower bound). A regression on ranks in a double logarithmic plot is biased, and its
//! error is wrong, as ranks depend on each other. Counts of a part of all keys, chosen by their hash, have the same tail.

use serde::Serialize;

/// Keys with fewer requests are noise around the law.
const LEAST_COUNT: u32 = 10;
const LEAST_KEYS: usize = 50;

/// A Zipf law for the keys with at least `least_count` requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Popularity {
    pub exponent: f64,
    /// Its standard error.
    pub error: f64,
    /// The largest difference between the law and the counts (Kolmogorov and Smirnov): a fit has less than 0.05.
    pub distance: f64,
    /// The keys that it was fitted to.
    pub keys: u64,
    pub least_count: u32,
}

/// The share of all requests that the key of a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankShare {
    pub rank: f64,
    pub share: f64,
}

/// Fit the law to the counts of keys, in any order. `None` if too few keys have enough requests.
pub fn fit_exponent(counts: &[u32]) -> Option<Popularity> {
    let mut tail: Vec<u32> = counts.iter().copied().filter(|count| *count >= LEAST_COUNT).collect();
    if tail.len() < LEAST_KEYS {
        return None;
    }
    tail.sort_unstable();
    let bound = f64::from(LEAST_COUNT) - 0.5;
    let number = tail.len() as f64;
    let exponent = tail.iter().map(|count| (f64::from(*count) / bound).ln()).sum::<f64>() / number;
    Some(Popularity {
        exponent,
        error: exponent / number.sqrt(),
        distance: distance(&tail, exponent, bound),
        keys: tail.len() as u64,
        least_count: LEAST_COUNT,
    })
}

/// The largest difference between the part of keys with less than a count, and what the law says.
fn distance(sorted: &[u32], exponent: f64, bound: f64) -> f64 {
    let number = sorted.len() as f64;
    let below_by_law = |count: f64| 1.0 - ((count - 0.5) / bound).powf(-1.0 / exponent);
    let mut largest: f64 = 0.0;
    for (place, count) in sorted.iter().enumerate() {
        if place == 0 || sorted[place - 1] != *count {
            let below = place as f64 / number;
            largest = largest.max((below - below_by_law(f64::from(*count))).abs());
        }
    }
    largest
}

/// Ranks at even steps of a logarithmic axis, from the largest count on. Each counted key stands for `weight` keys.
pub(crate) fn rank_shares(sorted: &[u32], weight: f64, requests: u64) -> Vec<RankShare> {
    let mut places: Vec<usize> =
        (0..=48).map(|step| 10f64.powf(f64::from(step) / 6.0) as usize).collect();
    places.dedup();
    let share = |place: &usize| RankShare {
        // The first of a part is not the first of all.
        rank: (*place as f64 - 0.5) * weight + 0.5,
        share: f64::from(sorted[*place - 1]) / requests as f64,
    };
    let known = places.iter().filter(|place| **place <= sorted.len());
    known.map(share).collect()
}
