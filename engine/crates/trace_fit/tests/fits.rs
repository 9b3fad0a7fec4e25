//! Workloads that are fitted to traces of known kinds.

use std::collections::HashMap;

use cachemark_tape::Arrivals;
use cachemark_trace::file::Record;
use cachemark_trace_fit::{Collected, Fit, fit, fit_arrivals, fit_ranks};
use cachemark_trace_statistics::Dispersion;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, LogNormal, Zipf};

const REQUESTS: usize = 60_000;

/// Requests of a trace that is being made, with Poisson arrivals: 2,000 in a second.
struct Maker {
    random: ChaCha8Rng,
    collected: Collected,
    at_s: f64,
}

impl Maker {
    fn new() -> Maker {
        let random = ChaCha8Rng::seed_from_u64(9);
        Maker { random, collected: Collected::new(), at_s: 0.0 }
    }

    fn add(&mut self, operation: &str, key: u64, size: u32, ttl_s: u32, hit: bool) {
        self.at_s += Exp::new(2000.0).unwrap().sample(&mut self.random);
        self.collected.add(&Record {
            at_ns: Some((self.at_s * 1e9) as u64),
            operation,
            key: format!("secret:{key:08}").as_bytes(),
            key_bytes: None,
            length: Some(size),
            ttl_s,
            count: 1,
            client: None,
            succeeded: Some(hit),
            joined: false,
        });
    }

    /// A read by a program that stores what it does not find.
    fn read_aside(&mut self, held: &mut HashMap<u64, f64>, key: u64, size: u32, ttl_s: u32) {
        let hit = held.get(&key).is_some_and(|until_s| *until_s > self.at_s);
        self.add("get", key, if hit { size } else { 0 }, 0, hit);
        if !hit {
            self.add("set", key, size, ttl_s, true);
            let lives_s = if ttl_s == 0 { f64::INFINITY } else { f64::from(ttl_s) };
            held.insert(key, self.at_s + lives_s);
        }
    }

    fn fit(self) -> Fit {
        fit(self.collected).expect("a trace that can be fitted")
    }
}

/// The size of a key's value, by a law that experiments do not have.
fn size_of(key: u64) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(key);
    LogNormal::new(5.5, 0.8).unwrap().sample(&mut random) as u32 + 20
}

fn aside() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    let law = Zipf::new(20_000.0, 0.9).unwrap();
    while maker.collected.requests.len() < REQUESTS {
        let key = law.sample(&mut maker.random) as u64;
        maker.read_aside(&mut held, key, size_of(key), if key.is_multiple_of(3) { 5 } else { 0 });
        if maker.random.random_ratio(1, 12) {
            let key = law.sample(&mut maker.random) as u64;
            maker.add("set", key, size_of(key), if key.is_multiple_of(3) { 5 } else { 0 }, true);
        }
    }
    maker
}

fn uniform_with_deletes() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    while maker.collected.requests.len() < REQUESTS {
        let key = maker.random.random_range(0..8000);
        maker.read_aside(&mut held, key, 300, 0);
        if maker.random.random_ratio(1, 10) {
            let key = maker.random.random_range(0..8000);
            held.remove(&key);
            maker.add("delete", key, 0, 0, true);
        }
    }
    maker
}

/// Reads of what was written lately, and a new key with each write.
fn feed() -> Maker {
    let mut maker = Maker::new();
    let law = Zipf::new(10_000.0, 0.9).unwrap();
    for newest in 0..10_000 {
        maker.add("set", newest, size_of(newest), 0, true);
        for _ in 0..4 {
            let age = law.sample(&mut maker.random) as u64;
            let key = newest.saturating_sub(age - 1);
            maker.add("get", key, size_of(key), 0, true);
        }
    }
    maker
}

/// All keys in turn, again and again.
fn loops() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    for place in 0..REQUESTS as u64 / 2 {
        maker.read_aside(&mut held, place % 6000, 500, 0);
    }
    maker
}

/// Reads of popular keys, and in turn of many others: scans that come again.
fn scans() -> Maker {
    let (mut maker, law) = (Maker::new(), Zipf::new(4000.0, 1.1).unwrap());
    let mut scanned = 0;
    for place in 0..REQUESTS as u64 {
        let scans = place % 2000 < 600;
        scanned += u64::from(scans);
        let key = match scans {
            true => 10_000 + scanned % 7000,
            false => law.sample(&mut maker.random) as u64,
        };
        maker.add("get", key, 200 + (key % 100) as u32, 0, true);
    }
    maker
}

/// Sessions: keys that come, are read and written for a while, and never come again.
fn sessions() -> Maker {
    let (mut maker, life) = (Maker::new(), Exp::new(1.0 / 200.0).unwrap());
    for place in 0..REQUESTS as u64 {
        let key = (place / 20).saturating_sub(life.sample(&mut maker.random) as u64);
        let operation = if maker.random.random_ratio(7, 10) { "get" } else { "set" };
        maker.add(operation, key, size_of(key), 600, true);
    }
    maker
}

/// Small popular values, and scans of large ones.
fn scans_of_other_sizes() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    let (law, mut scanned) = (Zipf::new(8000.0, 1.0).unwrap(), 0);
    for place in 0..REQUESTS as u64 {
        if place % 2000 < 600 {
            scanned += 1;
            let key = 100_000 + scanned % 5000;
            maker.read_aside(&mut held, key, 4000 + size_of(key) % 700, 0);
        } else {
            let key = law.sample(&mut maker.random) as u64;
            maker.read_aside(&mut held, key, size_of(key) / 4, 0);
        }
    }
    maker
}

/// Popular pages beside large sessions that come, are written for a while, and never come again.
fn pages_and_sessions() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    let (law, life) = (Zipf::new(8000.0, 0.9).unwrap(), Exp::new(1.0 / 80.0).unwrap());
    for place in 0..REQUESTS as u64 {
        if maker.random.random_ratio(1, 3) {
            let age = life.sample(&mut maker.random) as u64;
            let key = 200_000 + (place / 30).saturating_sub(age);
            let operation = if maker.random.random_ratio(7, 10) { "get" } else { "set" };
            maker.add(operation, key, 3 * size_of(key) + 1000, 0, true);
        } else {
            let key = law.sample(&mut maker.random) as u64;
            maker.read_aside(&mut held, key, 100 + size_of(key) % 50, 0);
        }
    }
    maker
}

/// Popular keys that expire soon, and unpopular larger ones that stay.
fn churn_by_expiry() -> Maker {
    let (mut maker, mut held) = (Maker::new(), HashMap::new());
    let law = Zipf::new(3000.0, 1.1).unwrap();
    while maker.collected.requests.len() < REQUESTS {
        if maker.random.random_ratio(3, 5) {
            let key = law.sample(&mut maker.random) as u64;
            maker.read_aside(&mut held, key, 200, 2);
        } else {
            let key = 300_000 + maker.random.random_range(0..6000);
            maker.read_aside(&mut held, key, 1200 + size_of(key) % 300, 0);
        }
    }
    maker
}

fn distance(fit: &Fit, of: &str) -> f64 {
    let found = fit.distances.iter().find(|distance| distance.of.starts_with(of)).unwrap();
    found.value.unwrap_or_else(|| panic!("{found:?}"))
}

#[test]
fn a_fit_has_the_hit_ratios_of_its_trace() {
    for (name, maker, law) in [
        ("aside", aside(), "zipf:"),
        ("uniform", uniform_with_deletes(), "uniform"),
        ("feed", feed(), "latest:"),
        ("loops", loops(), "sequential"),
        ("scans", scans(), "recency:"),
        ("sessions", sessions(), "recency:"),
    ] {
        let fit = maker.fit();
        println!("{name}: {fit:#?}");
        assert!(fit.workload.drawn.distribution.starts_with(law), "{name}: {fit:#?}");
        for policy in ["hit ratio, memcached", "hit ratio, LRU"] {
            let far = distance(&fit, policy);
            assert!(far <= 0.02, "{name}, {policy}: {far} {fit:#?}");
        }
        assert!(distance(&fit, "gaps") < 0.05, "{name}: {fit:#?}");
        assert!(!fit.workload.toml().contains("secret"), "{name}");
    }
}

#[test]
fn sizes_that_depend_on_popularity_make_parts() {
    for (name, maker) in [
        ("scans", scans_of_other_sizes()),
        ("sessions", pages_and_sessions()),
        ("churn", churn_by_expiry()),
    ] {
        let fit = maker.fit();
        let drawn = &fit.workload.drawn;
        println!("{name}: {:#?}", fit.distances);
        assert!(drawn.distribution.contains(';'), "{name}: {fit:#?}");
        for policy in ["hit ratio, memcached", "hit ratio, LRU"] {
            let far = distance(&fit, policy);
            assert!(far <= 0.02, "{name}, {policy}: {far} {fit:#?}");
        }
    }
}

#[test]
fn sizes_lengths_and_expiry_times_are_those_of_the_trace() {
    let fit = aside().fit();
    for of in ["value sizes", "key lengths", "expiry times"] {
        assert!(distance(&fit, of) < 0.05, "{of}: {fit:#?}");
    }
    assert!(fit.workload.drawn.exptime_s.starts_with("0=0.6"), "{fit:#?}");
    // The hottest keys expire or not by chance.
    let told: Vec<&str> = fit.missing.iter().filter_map(|told| told.split(":").next()).collect();
    assert_eq!(told, ["which keys are the hottest"], "{fit:#?}");
}

/// Popularity alone would let more of these reads hit; their order has their hit ratios.
#[test]
fn what_the_workload_lacks_is_told() {
    let mut maker = Maker::new();
    let mut held = HashMap::new();
    for round in 0..200 {
        for read in 0..150 {
            maker.read_aside(&mut held, round * 50 + read % 50, 200, 0);
        }
        maker.add("incr", 1, 0, 0, true);
    }
    let fit = maker.fit();
    assert!(fit.missing.iter().any(|told| told.starts_with("incr: 200 ")), "{fit:#?}");
    assert!(fit.workload.drawn.distribution.starts_with("recency:"), "{fit:#?}");
    assert!(distance(&fit, "hit ratio, LRU") <= 0.02, "{fit:#?}");
}

#[test]
fn a_rank_law_is_found_with_unseen_keys() {
    for (exponent, keys) in [(0.0, 5000.0), (0.6, 50_000.0), (0.99, 50_000.0), (1.4, 20_000.0)] {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let law = Zipf::new(keys, exponent).unwrap();
        let mut counts = HashMap::<u64, u32>::new();
        (0..100_000).for_each(|_| *counts.entry(law.sample(&mut random) as u64).or_default() += 1);
        let found = fit_ranks(&counts.values().copied().collect::<Vec<_>>());
        assert!((found.exponent - exponent).abs() < 0.04, "{exponent}: {found:?}");
        assert!(found.distance < 0.03 && found.error < 0.1, "{exponent}: {found:?}");
        assert!((found.keys / keys).ln().abs() < 0.35, "{exponent}, {keys}: {found:?}");
    }
}

#[test]
fn bursts_are_found_from_indices_of_dispersion() {
    let dispersion = |window_s: f64, index: f64, peak| Dispersion {
        window_s,
        windows: 1000,
        mean: 100.0 * window_s,
        index,
        peak,
    };
    let flat = [dispersion(0.01, 1.02, 3.0), dispersion(1.0, 1.1, 1.2)];
    assert_eq!(fit_arrivals(&flat, 1000.0), Arrivals::Poisson);
    // Of bursts of 5 times the rate, a tenth of the time, each for 0.1 s: v = 1.78, τ = 0.09 s.
    let index = |window_s: f64| {
        let part: f64 = 0.09 / window_s;
        1.0 + 2.0 * 1.78 * 1000.0 * 0.09 * (1.0 - part * -(-1.0 / part).exp_m1())
    };
    let windows = [0.01, 0.1, 1.0, 10.0].map(|width| dispersion(width, index(width), 5.0));
    let Arrivals::Bursts { factor, share, burst_ns } = fit_arrivals(&windows, 1000.0) else {
        panic!("bursts");
    };
    assert!((4.0..=6.0).contains(&factor), "{factor}");
    assert!((0.05..0.2).contains(&share), "{share}");
    assert!((5e7..2e8).contains(&burst_ns), "{burst_ns}");
}

#[test]
fn a_trace_without_sizes_or_reads_is_refused() {
    let mut maker = Maker::new();
    maker.add("set", 1, 10, 0, true);
    assert_eq!(fit(maker.collected), Err("it has no get: nothing can hit or miss".to_owned()));
    let mut collected = Collected::new();
    let record = Record {
        at_ns: None,
        operation: "get",
        key: b"a",
        key_bytes: None,
        length: None,
        ttl_s: 0,
        count: 3,
        client: None,
        succeeded: Some(false),
        joined: false,
    };
    collected.add(&record);
    let refused = fit(collected).expect_err("no sizes");
    assert!(refused.contains("no operation has a size"), "{refused}");
}
