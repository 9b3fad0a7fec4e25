//! Traces that tests of fleets share.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use cachemark_fleet::{FleetPlay, KeyTraffic, MissCurve, Placement, Played, Setting, Traffic};
use cachemark_miss_ratio::{Hottest, Operation, Plan, Policy, Population, Predictor, Request};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

pub const MIB: u64 = 1 << 20;

/// A request and its key.
pub struct Asked {
    pub request: Request,
    pub key: String,
}

fn hash(key: u64) -> u64 {
    let mut hash = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 27)
}

pub fn get(key: u64, at_s: u32, value_bytes: u32) -> Asked {
    let request = Request {
        hash: hash(key),
        at_s,
        ttl_s: 0,
        value_bytes,
        key_bytes: 10,
        operation: Operation::Get,
        succeeded: None,
    };
    Asked { request, key: format!("key:{key:06}") }
}

/// Gets by Zipf's law, a thousand a second.
pub fn gets(exponent: f64, keys: u64, count: u32, value_bytes: u32) -> Vec<Asked> {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let law = Zipf::new(keys as f64, exponent).unwrap();
    (0..count)
        .map(|number| get(law.sample(&mut random) as u64, number / 1000, value_bytes))
        .collect()
}

pub fn population(trace: &[Asked]) -> Population {
    let mut hottest = Hottest::default();
    trace.iter().for_each(|asked| hottest.add(&asked.request));
    hottest.population()
}

pub fn traffic(trace: &[Asked], part: f64) -> Vec<KeyTraffic> {
    let mut traffic = Traffic::new(part, &population(trace), 1);
    trace.iter().for_each(|asked| traffic.add(&asked.request, asked.key.as_bytes()));
    traffic.keys()
}

/// The exact curve of LRU.
pub fn curve(trace: &[Asked], sizes: &[u64]) -> MissCurve {
    let plan = Plan {
        sizes: sizes.to_vec(),
        policies: vec![Policy::Lru],
        part: 1.0,
        follows_enough: false,
        sampled: 1,
        warm_up: 0.2,
    };
    let mut predictor = Predictor::new(plan, population(trace));
    trace.iter().for_each(|asked| predictor.play(&asked.request));
    let points = predictor.prediction().curves.remove(0).points;
    MissCurve::new(points.iter().map(|at| (at.memory_bytes as f64, at.misses.unwrap().value)))
}

pub fn setting(placement: Placement, servers: usize, memory_bytes: u64) -> Setting {
    Setting {
        placement,
        addresses: Vec::new(),
        servers,
        memory_bytes,
        part: 1.0,
        sampled: 1,
        warm_up: 0.2,
        gutter_servers: 1,
        gutter_ttl_s: 1000,
    }
}

pub fn played(trace: &[Asked], setting: Setting) -> Played {
    let mut play = FleetPlay::new(setting, &population(trace));
    trace.iter().for_each(|asked| play.play(&asked.request, asked.key.as_bytes(), 0));
    play.played()
}
