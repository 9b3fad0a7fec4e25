//! The frequencies of keys against closed forms, with a million draws (case F18).

use cachemark_tape::{
    IntegerDistribution, KeyDistribution, KeyShape, Recency, Verb, Workload, parse_mix,
};

use crate::common::{DKW_99, open};

const DRAWS: u64 = 1_000_000;

fn workload(keys: u32, distribution: &str, mix: &str) -> Workload {
    Workload {
        keys,
        distribution: distribution.parse().expect("a distribution"),
        shape: KeyShape::Length(IntegerDistribution::fixed(8)),
        size: IntegerDistribution::fixed(10),
        mix: parse_mix(mix).expect("a mix"),
        run: 20,
        ..Workload::default()
    }
}

/// The share of each key in a million draws.
fn shares(keys: u32, distribution: &str) -> Vec<f64> {
    let tape = open(&workload(keys, distribution, "get"), DRAWS);
    let mut shares = vec![0.0; keys as usize];
    for j in 0..DRAWS {
        shares[tape.op(j).key as usize] += 1.0 / DRAWS as f64;
    }
    shares
}

/// The largest distance between two distribution functions, given as shares.
fn distance(drawn: &[f64], law: &[f64]) -> f64 {
    let (mut sum, mut far) = (0.0_f64, 0.0_f64);
    for (drawn, law) in drawn.iter().zip(law) {
        sum += drawn - law;
        far = far.max(sum.abs());
    }
    far
}

fn zipf(count: u32, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|rank| f64::from(rank).powf(-exponent)).collect();
    let whole: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / whole).collect()
}

#[test]
fn a_hotspot_has_its_part_of_the_operations() {
    let mut shares = shares(1000, "hotspot:0.2:0.8");
    shares.sort_by(|a, b| b.total_cmp(a));
    let hot: f64 = shares[..200].iter().sum();
    assert!((hot - 0.8).abs() < 3.29 * (0.8 * 0.2 / DRAWS as f64).sqrt(), "{hot}");
    // Uniform within each part: five deviations of a Poisson count, for the extremes of a thousand.
    let near = |share: f64, is: f64| (share - is).abs() < 5.0 * (is / DRAWS as f64).sqrt();
    assert!(shares[..200].iter().all(|share| near(*share, 0.8 / 200.0)));
    assert!(shares[200..].iter().all(|share| near(*share, 0.2 / 800.0)));
}

#[test]
fn a_hotspot_of_everything_is_uniform() {
    let shares = shares(2, "hotspot:0.9:0.5");
    assert!((shares[0] - 0.5).abs() < 3.29 * 0.5 / (DRAWS as f64).sqrt());
}

#[test]
fn gaussian_keys_are_normal_round_the_middle() {
    for (text, deviation) in [("gaussian:0.1", 100.0), ("gaussian", 1000.0 / 6.0)] {
        let density = |k: f64| (-((k - 499.5) / deviation).powi(2) / 2.0).exp();
        // Simpson's rule over the interval of each key.
        let area = |k: f64| (density(k - 0.5) + 4.0 * density(k) + density(k + 0.5)) / 6.0;
        let areas: Vec<f64> = (0..1000).map(|k| area(f64::from(k))).collect();
        let whole: f64 = areas.iter().sum();
        let law: Vec<f64> = areas.iter().map(|area| area / whole).collect();
        assert!(distance(&shares(1000, text), &law) < DKW_99, "{text}");
    }
}

#[test]
fn the_latest_keys_are_the_most_likely() {
    // Nothing is written: the last key of the prefill stays the newest.
    let mut by_age = shares(1000, "latest:0.99");
    by_age.reverse();
    assert!(distance(&by_age, &zipf(1000, 0.99)) < DKW_99);
}

#[test]
fn recency_is_how_many_other_keys_were_used_since() {
    let law = "recency:0.25:0=1,3..5=3/0:10";
    let some = Workload { prefill: 0.0, ..workload(50_000, law, "get=9,set=1") };
    let tape = open(&some, 20_000);
    let (mut order, mut by_distance, mut reads) = (Recency::new(50_000), [0.0; 6], 0.0);
    for op in (0..20_000).map(|place| tape.op(place)) {
        let used = order.keys();
        match order.touch(op.key) {
            None => assert_eq!(op.key, used, "new keys follow in their order"),
            Some(distance) if op.verb == Verb::Set => assert_eq!(distance, 10),
            Some(distance) => {
                assert!(used > distance);
                by_distance[distance as usize] += 1.0;
            }
        }
        reads += f64::from(u32::from(op.verb == Verb::Get));
    }
    let expected = [3.0 / 16.0, 0.0, 0.0, 3.0 / 16.0, 3.0 / 16.0, 3.0 / 16.0];
    for (found, expected) in by_distance.iter().zip(expected) {
        assert!((found / reads - expected).abs() < 0.02, "{by_distance:?} of {reads}");
    }
    assert!((f64::from(order.keys()) / reads - 0.25).abs() < 0.02);
}

#[test]
fn the_order_of_use_is_that_of_a_list() {
    let (mut order, mut list) = (Recency::new(8), Vec::<u32>::new());
    // More uses than slots: they are given anew.
    for step in 0..300_u32 {
        let key = step * step % 7;
        let distance = list.iter().rev().position(|other| *other == key);
        assert_eq!(order.touch(key), distance.map(|distance| distance as u32));
        list.retain(|other| *other != key);
        list.push(key);
        let found: Vec<Option<u32>> = (0..9).map(|distance| order.key_at(distance)).collect();
        let expected = (0..9).map(|distance| list.iter().rev().nth(distance).copied());
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
}

#[test]
fn writes_make_new_keys_and_reads_follow_them() {
    let some = Workload { prefill: 0.5, ..workload(1000, "latest:0.99", "get=9,set=1") };
    let tape = open(&some, DRAWS);
    let (mut newest, mut exist) = (499_u32, 500_u32);
    let (mut by_age, mut reads) = (vec![0.0; 1000], 0.0);
    for op in (0..DRAWS).map(|j| tape.op(j)) {
        if op.verb == Verb::Set {
            newest = (newest + 1) % 1000;
            exist = (exist + 1).min(1000);
            assert_eq!(op.key, newest);
            continue;
        }
        let age = (newest + 1000 - op.key) % 1000;
        assert!(age < exist, "a key that was never stored");
        if exist == 1000 {
            by_age[age as usize] += 1.0;
            reads += 1.0;
        }
    }
    by_age.iter_mut().for_each(|count| *count /= reads);
    assert!(distance(&by_age, &zipf(1000, 0.99)) < DKW_99 * (DRAWS as f64 / reads).sqrt());
}

#[test]
fn ycsbs_zipfian_has_one_hottest_share_for_any_key_count() {
    // 1 / ζ and 2^−0.99 / ζ with YCSB's ζ of 26.469; other items may fall on the same key.
    for keys in [10_000, 1_000_000] {
        let mut shares = shares(keys, "ycsb-zipfian");
        shares.sort_by(|a, b| b.total_cmp(a));
        let chance = 3.0 / f64::from(keys) + 0.0008;
        assert!((shares[0] - 0.037_78).abs() < chance, "{keys}: {}", shares[0]);
        assert!((shares[1] - 0.019_02).abs() < chance, "{keys}: {}", shares[1]);
    }
}

#[test]
fn reads_find_what_the_hit_ratio_says() {
    let some = Workload {
        prefill: 0.8,
        hit_ratio: Some(0.9),
        ..workload(1000, "zipf:0.99", "get=6,mget=1,set=3")
    };
    let tape = open(&some, DRAWS);
    assert_eq!(tape.prefill_count(), 800);
    let (mut found, mut asked) = (0.0, 0.0);
    for op in (0..DRAWS).map(|j| tape.op(j)) {
        let keys: Vec<u32> = tape.run(&op).collect();
        match op.verb {
            Verb::Set => assert!(keys[0] < 800, "a write of a key that is never stored"),
            Verb::Get => {
                found += f64::from(u8::from(keys[0] < 800));
                asked += 1.0;
            }
            _ => assert_eq!(keys.len(), 20),
        }
    }
    let ratio = found / asked;
    assert!((ratio - 0.9).abs() < 3.29 * (0.9 * 0.1 / asked).sqrt(), "{ratio}");
}

#[test]
fn hit_ratios_that_cannot_hold_are_refused() {
    let sound =
        || Workload { hit_ratio: Some(0.9), prefill: 0.9, ..workload(100, "uniform", "get") };
    assert!(sound().check().is_ok());
    for unsound in [
        Workload { prefill: 1.0, ..sound() },
        Workload { prefill: 0.0, ..sound() },
        Workload { hit_ratio: Some(1.5), ..sound() },
        Workload { counters: 5, ..sound() },
        Workload { mix: parse_mix("get,delete").expect("a mix"), ..sound() },
        Workload { mix: parse_mix("fetch").expect("a mix"), ..sound() },
        Workload { distribution: KeyDistribution::Latest(0.99), ..sound() },
    ] {
        let refused = unsound.check().expect_err("it cannot hold");
        assert!(refused.0.contains("--hit-ratio"), "{refused}");
    }
    assert!(Workload { hit_ratio: Some(1.0), prefill: 1.0, ..sound() }.check().is_ok());
}

#[test]
fn a_fetch_has_the_value_that_it_would_store() {
    let tape = open(&workload(50, "zipf:0.99", "fetch"), 100);
    for op in (0..100).map(|j| tape.op(j)) {
        assert_eq!((op.verb, op.run, op.length), (Verb::Fetch, 1, 10));
        assert!(!op.noreply);
    }
    assert!(parse_mix("fetch_noreply").is_err());
}

#[test]
fn runs_stay_distinct_for_any_distribution() {
    for law in ["hotspot:0.01:0.99", "gaussian:0.001", "latest:8", "ycsb-zipfian", "zipf:8"] {
        for hit_ratio in [None, Some(1.0)] {
            if law.starts_with("latest") && hit_ratio.is_some() {
                continue;
            }
            let some = Workload { hit_ratio, ..workload(40, law, "mget") };
            let tape = open(&some, 200);
            for op in (0..200).map(|j| tape.op(j)) {
                let mut keys: Vec<u32> = tape.run(&op).collect();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), 20, "{law}");
            }
        }
    }
}

#[test]
fn invalid_distributions_are_rejected() {
    for text in [
        "zipf",
        "zipf:-1",
        "zipf:x",
        "hotspot",
        "hotspot:0.2",
        "hotspot:0:1",
        "hotspot:0.2:1.5",
        "latest:-1",
        "gaussian:0",
        "gaussian:nan",
        "recency",
        "recency:0.1",
        "recency:1.5:0..9",
        "recency:0.1:9..0",
        "recency:0.1:0..9/x",
        "uniform:1",
        "nonsense",
    ] {
        assert!(text.parse::<KeyDistribution>().is_err(), "{text}");
    }
}

#[test]
fn a_deviation_in_keys_is_refused_with_its_unit() {
    let refused = "gaussian:100".parse::<KeyDistribution>().expect_err("a number of keys");
    assert!(refused.to_string().contains("is a part of all keys"), "{refused}");
    "gaussian:1".parse::<KeyDistribution>().expect("all keys");
}

#[test]
fn parts_of_keys_have_their_shares_and_sizes() {
    let distribution = "1:0.7/0.1:zipf:1;3:0.3/0.9:sequential";
    let mut workload = workload(1000, distribution, "get=9,set=1");
    workload.size = "10..20;500".parse().expect("sizes");
    workload.exptime_s = "0;60".parse().expect("times");
    workload.shape = KeyShape::Length("8;12".parse().expect("lengths"));
    let tape = open(&workload, DRAWS);
    let (mut reads, mut writes, mut second) = ([0.0_f64; 2], [0.0_f64; 2], Vec::new());
    for place in 0..DRAWS {
        let op = tape.op(place);
        let part = usize::from(op.key >= 250);
        let of = if op.verb == Verb::Get { &mut reads } else { &mut writes };
        of[part] += 1.0;
        assert_eq!(op.exptime_s, [0, 60][part]);
        if part == 1 {
            second.push(op.key);
        }
    }
    assert!((reads[0] / (reads[0] + reads[1]) - 0.7).abs() < 0.005, "{reads:?}");
    assert!((writes[0] / (writes[0] + writes[1]) - 0.1).abs() < 0.01, "{writes:?}");
    assert_eq!(second[..1000], (0..1000).map(|at| 250 + at % 750).collect::<Vec<u32>>());
    for key in 0..1000 {
        let (size, length) = (tape.value_length(key), tape.key_length(key));
        let is_first = (10..=20).contains(&size) && length == 8;
        assert!(if key < 250 { is_first } else { (size, length) == (500, 12) }, "{key}");
    }
}

#[test]
fn laws_for_other_numbers_of_parts_are_refused() {
    let refused = |size: &str, distribution: &str| {
        let mut workload = workload(1000, distribution, "get");
        workload.size = size.parse().expect("sizes");
        workload.check().expect_err("a mismatch").to_string()
    };
    assert!(refused("1;2", "uniform").contains("--size is for 2 parts of keys"));
    let parts = "1:1:uniform;1:1:uniform";
    assert!(refused("1;2;3", parts).contains("--distribution has 2"));
    for text in
        ["1:1:uniform;", "1:uniform;1:1:uniform", "-1:1:uniform;1:1:uniform", "1:1:1:1;2:2:2"]
    {
        assert!(text.parse::<KeyDistribution>().is_err(), "{text}");
    }
}
