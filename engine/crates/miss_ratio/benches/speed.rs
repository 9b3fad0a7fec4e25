//! Requests of a stream in memory for a second of CPU time: the first pass, and LRU curves of ten sizes, exact and of a
//! part of the keys.
//!
//!     cargo bench -p cachemark-miss-ratio --bench speed

#![allow(clippy::print_stdout)]

use std::time::Duration;

use cachemark_miss_ratio::{
    Hottest, NO_SIZE, Operation, Plan, Policy, Population, Predictor, Request,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};
use rustix::time::{ClockId, clock_gettime};

const REQUESTS: usize = 10_000_000;
const KEYS: f64 = 1_000_000.0;

/// Gets by Zipf's law, each key with a size of its own, as a trace has them: the log says what came of each.
fn requests(exponent: f64) -> Vec<Request> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let law = Zipf::new(KEYS, exponent).unwrap();
    let request = |number: usize| {
        let key = (law.sample(&mut random) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hit = random.random_ratio(9, 10);
        Request {
            hash: hash ^ (hash >> 27),
            at_s: (number / 100_000) as u32,
            ttl_s: 0,
            value_bytes: if hit { 50 + (key >> 32) as u32 % 500 } else { NO_SIZE },
            key_bytes: 20,
            operation: Operation::Get,
            succeeded: None,
        }
    };
    (0..REQUESTS).map(request).collect()
}

/// Of this thread: other programs on the machine do not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed<T>(name: &str, of: impl FnOnce() -> T) -> T {
    let begun = cpu_time();
    let done = of();
    let rate = REQUESTS as f64 / (cpu_time() - begun).as_secs_f64() / 1e6;
    println!("{name:28} {rate:7.1} M requests for a second of CPU time");
    done
}

fn curve(requests: &[Request], population: &Population, part: f64) {
    let size = |step: i32| (32.0 * 16f64.powf(f64::from(step) / 9.0)).round() as u64;
    let sizes = (0..10).map(|step| size(step) << 20).collect();
    let policies = vec![Policy::Lru];
    let plan = Plan { sizes, policies, part, follows_enough: false, sampled: 1, warm_up: 0.2 };
    let mut predictor = Predictor::new(plan, population.clone());
    timed(&format!("LRU, {part} of the keys"), || {
        requests.iter().for_each(|request| predictor.play(request));
    });
    let told = predictor.prediction();
    let misses = |point: &cachemark_miss_ratio::Point| point.misses.map_or(-1.0, |of| of.value);
    let curve: Vec<String> =
        told.curves[0].points.iter().map(|point| format!("{:.4}", misses(point))).collect();
    println!("  misses {}", curve.join(" "));
}

fn main() {
    for exponent in [0.8, 1.0] {
        println!("Zipf {exponent}");
        let requests = requests(exponent);
        let population = timed("first pass", || {
            let mut hottest = Hottest::default();
            requests.iter().for_each(|request| hottest.add(request));
            hottest.population()
        });
        for part in [1.0, 0.01] {
            curve(&requests, &population, part);
        }
    }
}
