//! Miss-ratio curves of requests, and how far two are apart.

use cachemark_miss_ratio::{
    Operation, Plan, Point, Policy, Population, Predictor, Request, SlabClasses, item_bytes,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::collected::{Collected, Kept, KeyFacts};

const SIZES: i32 = 10;
const PAGE_BYTES: u64 = 1 << 20;
/// From the bytes of all items down to this part of them.
const SMALLEST: f64 = 1.0 / 64.0;
const WARM_UP: f64 = 0.2;

/// Ten sizes of memory, up to what all items take.
pub fn sizes(collected: &Collected) -> Vec<u64> {
    let slabs = SlabClasses::default();
    let charged = |facts: &KeyFacts| {
        let bytes = item_bytes(facts.key_bytes, facts.value_bytes?);
        slabs.charged_bytes(bytes).map(f64::from)
    };
    let all: f64 = collected.keys.values().filter_map(charged).sum();
    let size = |step: i32| all * SMALLEST.powf(f64::from(SIZES - 1 - step) / f64::from(SIZES - 1));
    let pages = |bytes: f64| (bytes / PAGE_BYTES as f64).ceil().max(1.0) as u64 * PAGE_BYTES;
    let mut sizes: Vec<u64> = (0..SIZES).map(|step| pages(size(step))).collect();
    sizes.dedup();
    sizes
}

/// The shares of reads that miss at these sizes, by policy.
pub fn misses(requests: &[Request], sizes: &[u64], policies: &[Policy]) -> Vec<Vec<f64>> {
    // All keys are followed: nothing else of the population matters.
    let population = Population { requests: requests.len() as u64, ..Population::default() };
    let plan = Plan {
        sizes: sizes.to_vec(),
        policies: policies.to_vec(),
        part: 1.0,
        follows_enough: false,
        sampled: 1,
        warm_up: WARM_UP,
    };
    let mut predictor = Predictor::new(plan, population);
    requests.iter().for_each(|request| predictor.play(request));
    let curves = predictor.prediction().curves;
    let values = |point: &Point| point.misses.map_or(0.0, |of| of.value);
    curves.iter().map(|curve| curve.points.iter().map(values).collect()).collect()
}

/// The mean and the largest difference.
pub fn apart(a: &[f64], b: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - b).abs()).collect();
    let mean = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
    (mean, differences.into_iter().fold(0.0, f64::max))
}

/// How much of the curve comes from the order of reads: the mean difference to the same reads in random order, LRU,
/// without expiry.
pub fn order_matters(collected: &Collected, sizes: &[u64]) -> f64 {
    let read = |kept: &Kept| {
        let value_bytes = collected.size_of(kept)?;
        let is_read = kept.request.operation == Operation::Get;
        let plain = Request { at_s: 0, ttl_s: 0, succeeded: Some(true), ..kept.request };
        is_read.then_some(Request { value_bytes, ..plain })
    };
    let mut reads: Vec<Request> = collected.requests.iter().filter_map(read).collect();
    if reads.is_empty() {
        return 0.0;
    }
    let in_order = misses(&reads, sizes, &[Policy::Lru]);
    reads.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    apart(&in_order[0], &misses(&reads, sizes, &[Policy::Lru])[0]).0
}
