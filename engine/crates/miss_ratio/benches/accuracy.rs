//! How far curves of a hundredth of a million keys are from the exact ones, and how large their told error is.
//!
//!     cargo bench -p cachemark-miss-ratio --bench accuracy
//!     cargo bench -p cachemark-miss-ratio --bench accuracy -- policies
//!
//! The first: LRU, ten sizes of memory, twenty choices of keys. The second, with fewer requests: the embedded server and
//! memcached, whose caches get more of the keys than a hundredth, with the part at each size. Differences and errors
//! are in points of a percentage.

#![allow(clippy::print_stdout, clippy::type_complexity)]

use cachemark_miss_ratio::{
    Embedded, Fills, Hottest, Memcached, NO_SIZE, Operation, Plan, Policy, Prediction, Predictor,
    Ratio, Release, Request, Step,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

const REQUESTS: usize = 10_000_000;
const KEYS: f64 = 1_000_000.0;
const CHOICES: u64 = 20;
const PART: f64 = 0.01;
const SIZES: i32 = 10;
const FEWER_REQUESTS: usize = 3_000_000;
const FEWER_CHOICES: u64 = 8;
const FEWER_SIZES: i32 = 5;
const WARM_UP: f64 = 0.2;

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

fn sizes(count: i32) -> Vec<u64> {
    let ratio = |step: i32| 16f64.powf(f64::from(step) / f64::from(count - 1));
    (0..count).map(|step| ((32.0 * ratio(step)).round() as u64) << 20).collect()
}

fn predicted(requests: &[Request], choice: u64, plan: Plan) -> Prediction {
    let mut hottest = Hottest::default();
    chosen(requests, choice).for_each(|request| hottest.add(&request));
    let mut predictor = Predictor::new(plan, hottest.population());
    chosen(requests, choice).for_each(|request| predictor.play(&request));
    predictor.prediction()
}

fn plan(policy: Policy, count: i32, part: f64) -> Plan {
    let (sizes, policies) = (sizes(count), vec![policy]);
    Plan { sizes, policies, part, follows_enough: part < 1.0, sampled: 1, warm_up: WARM_UP }
}

fn misses(of: &Prediction) -> Vec<Ratio> {
    of.curves[0].points.iter().map(|point| point.misses.unwrap_or_default()).collect()
}

/// Misses at each size with all keys, whatever memory that takes.
fn with_all_keys(requests: &[Request], policy: Policy) -> Vec<f64> {
    let counted = (requests.len() as f64 * WARM_UP) as usize;
    let missed = |size: u64| -> f64 {
        let mut cache: Box<dyn FnMut(&Step) -> Option<bool>> = match policy {
            Policy::Embedded => {
                let mut cache = Embedded::new(size, 1.0);
                Box::new(move |step| cache.play(step))
            }
            _ => {
                let mut cache = Memcached::new(Release::Since1634, size, 1.0);
                Box::new(move |step| cache.play(step))
            }
        };
        let (mut fills, mut reads, mut missed) = (Fills::default(), 0, 0);
        for (number, request) in requests.iter().enumerate() {
            let hit = fills.step(request).and_then(|step| cache(&step));
            if number >= counted {
                reads += 1;
                missed += u32::from(hit != Some(true));
            }
        }
        f64::from(missed) / f64::from(reads)
    };
    sizes(FEWER_SIZES).into_iter().map(missed).collect()
}

#[derive(Default)]
struct Differences {
    count: f64,
    apart: f64,
    squares: f64,
    sum: f64,
    told: f64,
    within: [f64; 2],
}

impl Differences {
    fn add(&mut self, truth: f64, sampled: &Ratio) {
        let difference = sampled.value - truth;
        self.count += 1.0;
        self.apart += difference.abs();
        self.squares += difference * difference;
        self.sum += difference;
        self.told += sampled.error;
        for (errors, within) in [1.0, 2.0].into_iter().zip(&mut self.within) {
            *within += f64::from(u8::from(difference.abs() <= errors * sampled.error));
        }
    }

    fn told(&self) -> String {
        let points = |sum: f64| 100.0 * sum / self.count;
        format!(
            "apart {:.3}, mean {:+.3}, rms {:.3}, told {:.3}; within one error {:.0} %, two {:.0} %",
            points(self.apart),
            points(self.sum),
            100.0 * (self.squares / self.count).sqrt(),
            points(self.told),
            points(self.within[0]),
            points(self.within[1]),
        )
    }
}

fn show(name: &str, requests: &[Request]) {
    let exact = misses(&predicted(requests, 0, plan(Policy::Lru, SIZES, 1.0)));
    let mut all = Differences::default();
    for choice in 1..=CHOICES {
        let sampled = misses(&predicted(requests, choice, plan(Policy::Lru, SIZES, PART)));
        exact.iter().zip(&sampled).for_each(|(truth, sampled)| all.add(truth.value, sampled));
    }
    println!("{name:22} {}", all.told());
}

fn show_policy(name: &str, requests: &[Request], policy: Policy) {
    let requests = &requests[..FEWER_REQUESTS];
    let exact = with_all_keys(requests, policy);
    let mut at_sizes: Vec<(f64, Differences)> = exact.iter().map(|_| Default::default()).collect();
    for choice in 1..=FEWER_CHOICES {
        let prediction = predicted(requests, choice, plan(policy, FEWER_SIZES, PART));
        let points = prediction.curves[0].points.iter().zip(&exact).zip(&mut at_sizes);
        for ((point, truth), (part, differences)) in points {
            *part = point.part;
            differences.add(*truth, &point.misses.unwrap_or_default());
        }
    }
    for (size, (part, differences)) in sizes(FEWER_SIZES).iter().zip(&at_sizes) {
        println!("{name:18} {policy:?} {:4} MiB part {part:.3} {}", size >> 20, differences.told());
    }
}

fn main() {
    let of_policies = std::env::args().any(|argument| argument == "policies");
    let traces: [(&str, fn() -> Vec<Request>); 4] = [
        ("Zipf 1.0", || zipf(1.0, 0)),
        ("Zipf 0.8", || zipf(0.8, 0)),
        ("Zipf 0.6, expiry", || zipf(0.6, 100)),
        ("sessions", sessions),
    ];
    for (name, requests) in traces {
        let requests = requests();
        if of_policies {
            [Policy::Embedded, Policy::Memcached]
                .into_iter()
                .for_each(|policy| show_policy(name, &requests, policy));
        } else {
            show(name, &requests);
        }
    }
}
