//! The statistics of traces whose properties are known.

use std::collections::{HashMap, HashSet};

use cachemark_trace::file::Record;
use cachemark_trace_statistics::{Collector, TraceStatistics, fit_exponent};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Zipf};

const SECOND: u64 = 1_000_000_000;

fn get(at_ns: u64, key: &str) -> Record<'_> {
    Record {
        at_ns: Some(at_ns),
        operation: "get",
        key: key.as_bytes(),
        key_bytes: None,
        length: Some(100),
        ttl_s: 0,
        count: 1,
        client: None,
        succeeded: Some(true),
        joined: false,
    }
}

fn statistics<'a>(
    most_keys: usize,
    records: impl IntoIterator<Item = Record<'a>>,
) -> TraceStatistics {
    let mut collector = Collector::new(most_keys);
    records.into_iter().for_each(|record| collector.add(&record));
    collector.finish()
}

#[test]
fn the_exponent_of_a_zipf_law_is_found() {
    for exponent in [0.7, 1.0, 1.3] {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let law = Zipf::new(100_000.0, exponent).unwrap();
        let mut counts = HashMap::<u64, u32>::new();
        for _ in 0..1_000_000 {
            *counts.entry(law.sample(&mut random) as u64).or_default() += 1;
        }
        let fit = fit_exponent(&counts.values().copied().collect::<Vec<_>>()).unwrap();
        let error = (fit.exponent - exponent).abs();
        assert!(error < 0.04 && fit.error < 0.05, "{exponent}: {fit:?}");
    }
    assert_eq!(fit_exponent(&[9; 1000]), None);
    assert_eq!(fit_exponent(&[10; 49]), None);
}

#[test]
fn a_poisson_process_has_index_one_and_bursts_more() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let gaps = Exp::new(1000.0).unwrap();
    let mut at_s: f64 = 0.0;
    let times: Vec<u64> = (0..300_000)
        .map(|_| {
            at_s += gaps.sample(&mut random);
            (at_s * 1e9) as u64
        })
        .collect();
    let even = statistics(1000, times.iter().map(|at_ns| get(*at_ns, "a")));
    assert!(even.bursts.len() >= 5);
    for scale in &even.bursts {
        let error = 5.0 * (2.0 / scale.windows as f64).sqrt();
        assert!((scale.index - 1.0).abs() < error, "{scale:?}");
    }
    let bursts = statistics(1000, times.iter().map(|at_ns| get(at_ns / SECOND * SECOND, "a")));
    let seconds: Vec<f64> = bursts.bursts.iter().map(|scale| scale.window_s).collect();
    assert_eq!(seconds, [1.0, 10.0], "times in whole seconds show no smaller scale");
}

#[test]
fn what_has_expired_does_not_live() {
    let set = |at_s: u64, key: &'static str, ttl_s| Record {
        operation: "set",
        ttl_s,
        ..get(at_s * SECOND, key)
    };
    let shown = statistics(
        1000,
        [set(0, "a", 10), set(1, "b", 0), set(2, "c", 2), set(20, "d", 5), get(40 * SECOND, "b")],
    );
    assert_eq!(shown.keys.keys.value, 4.0);
    assert_eq!(shown.keys.bytes.value, 404.0);
    assert_eq!(shown.keys.most_live_items.value, 3.0);
    assert_eq!(shown.keys.most_live_bytes.value, 303.0);
    let last = shown.timeline.last().unwrap();
    assert_eq!((last.live_items, last.live_bytes), (1.0, 101.0));
    assert_eq!((shown.ttls.writes, shown.ttls.without), (4, 1));
}

#[test]
fn a_part_of_the_keys_stands_for_all() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let keys: Vec<String> =
        (0..200_000).map(|_| format!("k{}", random.random_range(0..50_000))).collect();
    let records = |at: usize| get(at as u64 * 1000, &keys[at]);
    let all = statistics(1 << 20, (0..keys.len()).map(records));
    let part = statistics(4000, (0..keys.len()).map(records));
    assert!(part.keys.sampled < 0.1 && all.keys.sampled == 1.0);
    assert_eq!(all.keys.keys.error, 0.0);
    for (of_all, of_part) in [
        (all.keys.keys, part.keys.keys),
        (all.keys.bytes, part.keys.bytes),
        (all.keys.one_hit_wonders, part.keys.one_hit_wonders),
    ] {
        assert!(
            (of_all.value - of_part.value).abs() < 4.0 * of_part.error,
            "{of_all:?} {of_part:?}"
        );
        assert!(of_part.error < 0.1 * of_part.value);
    }
}

#[test]
fn large_sizes_keep_three_digits() {
    let sized = |length| Record { length: Some(length), ..get(0, "a") };
    let sizes = statistics(10, [sized(5), sized(1_000_000), sized(100_000_000)]).read_value_bytes;
    let middle = sizes.quantiles.iter().find(|(part, _)| *part == 0.5).unwrap().1;
    assert!(middle.abs_diff(1_000_000) <= 1000 && sizes.max == 100_000_000);
    assert_eq!(sizes.mean, 101_000_005.0 / 3.0);
}

#[test]
fn joined_records_are_one_request() {
    let joined = |key: &'static str, joined| Record { joined, ..get(0, key) };
    let shown = statistics(
        10,
        [joined("a", false), joined("b", true), joined("c", true), joined("d", false)],
    );
    let multigets = shown.multigets;
    assert_eq!((multigets.keys.count, multigets.multigets, multigets.joined_keys), (2, 1, 3));
    assert_eq!(multigets.keys.max, 3);
}

proptest! {
    /// However the keys come: the counts equal a plain map's, and hot keys' bounds hold.
    #[test]
    fn counts_are_those_of_a_plain_map(numbers in prop::collection::vec(0u32..300, 1..2000)) {
        let names: Vec<String> = numbers.iter().map(|number| format!("key{number}")).collect();
        let shown = statistics(
            1 << 20, names.iter().enumerate().map(|(at, name)| get(at as u64 * SECOND / 7, name)),
        );
        let mut counts = HashMap::<&str, u64>::new();
        names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        prop_assert_eq!(shown.requests, names.len() as u64);
        prop_assert_eq!(shown.keys.keys.value as usize, counts.len());
        let once = counts.values().filter(|count| **count == 1).count() as f64;
        prop_assert!((shown.keys.one_hit_wonders.value - once / counts.len() as f64).abs() < 1e-9);
        for hot in &shown.hot_keys {
            let count = counts[hot.key.as_str()];
            prop_assert!(hot.count - hot.error <= count && count <= hot.count);
        }
        prop_assert_eq!(shown.hot_keys[0].count, *counts.values().max().unwrap());
        let over_time: u64 =
            shown.timeline.iter().flat_map(|window| window.operations.values()).sum();
        prop_assert_eq!(over_time, shown.requests);
        prop_assert!(shown.timeline.len() <= 60);
        let new: f64 = shown.timeline.iter().map(|window| window.new_keys).sum();
        prop_assert_eq!(new as usize, names.iter().collect::<HashSet<_>>().len());
    }
}
