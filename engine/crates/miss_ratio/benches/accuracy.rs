//! How far LRU curves of a hundredth of a million keys are from the exact ones, and how large their told error is.
//!
//!     cargo bench -p cachemark-miss-ratio --bench accuracy
//!
//! Ten sizes of memory, twenty choices of keys. Differences and errors are in points of a percentage.

#![allow(clippy::print_stdout)]

use cachemark_miss_ratio::{
    Hottest, NO_SIZE, Operation, Plan, Policy, Prediction, Predictor, Ratio, Request,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

const REQUESTS: usize = 10_000_000;
const KEYS: f64 = 1_000_000.0;
const CHOICES: u64 = 20;
const PART: f64 = 0.01;

fn mixed(number: u64) -> u64 {
    let hash = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Gets of keys by their numbers, each key with a size of its own, half of them with an expiry time if there is one.
fn requests(ttl_s: u32, mut next: impl FnMut(usize, &mut ChaCha8Rng) -> u64) -> Vec<Request> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let request = |number: usize| {
        let hash = mixed(next(number, &mut random).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let hit = random.random_ratio(9, 10);
        Request {
            hash,
            at_s: (number / 10_000) as u32,
            ttl_s: if hash & 1 == 0 { ttl_s } else { 0 },
            value_bytes: if hit { 50 + (hash >> 32) as u32 % 500 } else { NO_SIZE },
            key_bytes: 20,
            operation: Operation::Get,
            succeeded: None,
        }
    };
    (0..REQUESTS).map(request).collect()
}

fn zipf(exponent: f64, ttl_s: u32) -> Vec<Request> {
    let law = Zipf::new(KEYS, exponent).unwrap();
    requests(ttl_s, |_, random| law.sample(random) as u64)
}

/// Each tenth request is of a new key. The others are of one before it, as often of the last ten as of the ten times as
/// many before these.
fn sessions() -> Vec<Request> {
    requests(0, |number, random| {
        let newest = (number / 10) as f64;
        let lag = (random.random::<f64>() * (KEYS / 3.0).ln()).exp() - 1.0;
        (if number % 10 == 0 { newest } else { (newest - lag).max(0.0) }) as u64
    })
}

/// The requests with hashes by another function.
fn chosen(requests: &[Request], choice: u64) -> impl Iterator<Item = Request> {
    let hash = move |hash: u64| mixed(hash ^ choice.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    requests.iter().map(move |request| Request { hash: hash(request.hash), ..*request })
}

fn predicted(requests: &[Request], choice: u64, part: f64) -> Prediction {
    let size = |step: i32| (32.0 * 16f64.powf(f64::from(step) / 9.0)).round() as u64;
    let sizes = (0..10).map(|step| size(step) << 20).collect();
    let policies = vec![Policy::Lru];
    let plan = Plan { sizes, policies, part, follows_enough: false, sampled: 1, warm_up: 0.2 };
    let mut hottest = Hottest::default();
    chosen(requests, choice).for_each(|request| hottest.add(&request));
    let mut predictor = Predictor::new(plan, hottest.population());
    chosen(requests, choice).for_each(|request| predictor.play(&request));
    predictor.prediction()
}

fn misses(of: &Prediction) -> Vec<Ratio> {
    of.curves[0].points.iter().map(|point| point.misses.unwrap_or_default()).collect()
}

fn show(name: &str, requests: &[Request]) {
    let exact = misses(&predicted(requests, 0, 1.0));
    let (mut apart, mut told, mut mean, mut within) = (0.0, 0.0, 0.0, [0.0; 2]);
    let mut squares = 0.0;
    let all = CHOICES as f64 * exact.len() as f64;
    let mut worst = 0f64;
    for choice in 1..=CHOICES {
        let sampled = misses(&predicted(requests, choice, PART));
        let mut own = 0.0;
        for (truth, sampled) in exact.iter().zip(&sampled) {
            let difference = sampled.value - truth.value;
            own += difference.abs() / exact.len() as f64;
            apart += difference.abs() / all;
            squares += difference * difference / all;
            mean += difference / all;
            told += sampled.error / all;
            within[0] += f64::from(u8::from(difference.abs() <= sampled.error)) / all;
            within[1] += f64::from(u8::from(difference.abs() <= 2.0 * sampled.error)) / all;
        }
        worst = worst.max(own);
    }
    println!(
        "{name:22} apart {:.3} (worst choice {:.3}), mean {:+.3}, rms {:.3}, told {:.3}; within one error {:.0} %, two {:.0} %",
        100.0 * apart,
        100.0 * worst,
        100.0 * mean,
        100.0 * squares.sqrt(),
        100.0 * told,
        100.0 * within[0],
        100.0 * within[1],
    );
}

fn main() {
    show("Zipf 1.0", &zipf(1.0, 0));
    show("Zipf 0.8", &zipf(0.8, 0));
    show("Zipf 0.6, expiry", &zipf(0.6, 100));
    show("sessions", &sessions());
}
