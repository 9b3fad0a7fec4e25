//! Sizes, expiry times and key lengths against closed forms, with a million keys (case F18).

use cachemark_tape::{
    Arrivals, IntegerDistribution, IntegerRange, KeyShape, Schedule, Workload, generate, parse_mix,
    seconds,
};

use crate::common::{DKW_99, open};

const KEYS: u32 = 1_000_000;

fn workload(keys: u32, size: &str) -> Workload {
    Workload {
        keys,
        shape: KeyShape::Length(IntegerDistribution::fixed(8)),
        size: size.parse().expect("a law"),
        mix: parse_mix("set=1,mset=1,touch=1").expect("a mix"),
        run: 2,
        ..Workload::default()
    }
}

fn sizes(distribution: &str) -> Vec<u32> {
    let tape = open(&workload(KEYS, distribution), 1);
    let mut sizes: Vec<u32> = (0..KEYS).map(|k| tape.value_length(k)).collect();
    sizes.sort_unstable();
    sizes
}

/// The largest distance between the sample and a distribution function, over integers: a draw is
/// rounded, so n stands for everything up to n + ½.
fn distance(sorted: &[u32], distribution: impl Fn(f64) -> f64) -> f64 {
    let whole = sorted.len() as f64;
    let steps = sorted.iter().enumerate().filter(|(at, n)| sorted.get(at + 1) != Some(*n));
    steps
        .map(|(at, n)| ((at + 1) as f64 / whole - distribution(f64::from(*n) + 0.5)).abs())
        .fold(0.0, f64::max)
}

fn quantile(sorted: &[u32], part: f64) -> f64 {
    f64::from(sorted[(part * sorted.len() as f64) as usize])
}

fn gpareto(location: f64, scale: f64, shape: f64) -> impl Fn(f64) -> f64 {
    move |x| 1.0 - (1.0 + shape * (x - location).max(0.0) / scale).powf(-1.0 / shape)
}

fn gev(location: f64, scale: f64, shape: f64) -> impl Fn(f64) -> f64 {
    move |x| (-(1.0 + shape * (x - location) / scale).max(0.0).powf(-1.0 / shape)).exp()
}

/// Φ as the area under the density by Simpson's rule, exact to 1e-9: the standard library has no error
/// function.
fn normal(z: f64) -> f64 {
    let steps = 400;
    let width = z / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let inner: f64 = (0..steps)
        .map(|i| {
            let a = f64::from(i) * width;
            (density(a) + 4.0 * density(a + width / 2.0) + density(a + width)) * width / 6.0
        })
        .sum();
    0.5 + inner
}

#[test]
fn generalised_pareto_sizes_follow_their_distribution() {
    let drawn = sizes("gpareto:0:214.476:0.348238");
    assert!(distance(&drawn, gpareto(0.0, 214.476, 0.348_238)) < DKW_99);
    // The median and the 99th percentile in closed form.
    assert!((quantile(&drawn, 0.5) - 168.0).abs() < 2.0);
    assert!((quantile(&drawn, 0.99) - 2446.0).abs() < 40.0);
}

#[test]
fn pareto_sizes_start_at_their_minimum() {
    let drawn = sizes("pareto:100:2.5");
    assert_eq!(drawn[0], 100);
    assert!(distance(&drawn, |x| 1.0 - (100.0_f64 / x.max(100.0)).powf(2.5)) < DKW_99);
}

#[test]
fn extreme_value_sizes_follow_their_distribution() {
    let drawn = sizes("gev:30.7984:8.20449:0.078688");
    assert!(distance(&drawn, gev(30.7984, 8.204_49, 0.078_688)) < DKW_99);
    let mean = drawn.iter().map(|n| f64::from(*n)).sum::<f64>() / f64::from(KEYS);
    assert!((mean - 36.22).abs() < 0.04, "{mean}");
    for (part, is) in [(0.01, 19.0), (0.5, 33.85), (0.9, 51.0), (0.99, 76.3), (0.999, 106.1)] {
        assert!((quantile(&drawn, part) - is).abs() < 0.01 * is + 0.8, "{part}");
    }
}

#[test]
fn lognormal_sizes_follow_their_distribution() {
    let drawn = sizes("lognormal:300:1.1");
    let distribution = |x: f64| if x <= 0.5 { 0.0 } else { normal((x / 300.0).ln() / 1.1) };
    assert!(distance(&drawn, distribution) < DKW_99);
}

#[test]
fn ranges_and_weights_have_their_shares() {
    let drawn = sizes("100..1099");
    assert!(distance(&drawn, |x| ((x - 99.5) / 1000.0).clamp(0.0, 1.0)) < DKW_99);
    let drawn = sizes("64=3,1k=1,4k..8k=1");
    let share = |low: u32, high: u32| {
        drawn.iter().filter(|n| (low..=high).contains(n)).count() as f64 / f64::from(KEYS)
    };
    assert!((share(64, 64) - 0.6).abs() < DKW_99);
    assert!((share(1024, 1024) - 0.2).abs() < DKW_99);
    assert!((share(4096, 8192) - 0.2).abs() < DKW_99);
    assert!((share(4096, 6144) - 0.1).abs() < DKW_99, "alike within a range");
}

/// The shares of 0 to 14 bytes. From 15 on: generalised Pareto.
const ETC_SMALL: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];

#[test]
fn the_etc_mixture_has_its_shares_and_its_tail() {
    let small = ETC_SMALL.iter().enumerate().map(|(n, share)| format!("{n}={share}"));
    let text = small.chain(["gpareto:15:214.476:0.348238=0.55845".to_owned()]);
    let drawn = sizes(&text.collect::<Vec<_>>().join(","));
    let tail = gpareto(15.0, 214.476, 0.348_238);
    let distribution = |x: f64| {
        let below = ETC_SMALL.iter().take(x.floor() as usize + 1).sum::<f64>();
        below + (1.0 - 0.44155) * tail(x)
    };
    assert!(distance(&drawn, distribution) < DKW_99);
    let mean = drawn.iter().map(|n| f64::from(*n)).sum::<f64>() / f64::from(KEYS);
    assert!((mean - 194.4).abs() < 2.0, "{mean}");
    for (part, is) in [(0.1, 2.0), (0.25, 3.0), (0.4, 11.0), (0.75, 213.9), (0.99, 1899.0)] {
        assert!((quantile(&drawn, part) - is).abs() < 0.02 * is + 1.0, "{part}");
    }
}

#[test]
fn key_lengths_follow_their_distribution_and_keys_stay_unique() {
    let shape = KeyShape::Length("gev:30.7984:8.20449:0.078688".parse().expect("a law"));
    let tape = open(&Workload { shape, ..workload(KEYS, "10") }, 1);
    let mut lengths: Vec<u32> = (0..KEYS).map(|k| tape.key(k).len() as u32).collect();
    let mut keys: Vec<&[u8]> = (0..KEYS).map(|k| tape.key(k)).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
    lengths.sort_unstable();
    assert!(distance(&lengths, gev(30.7984, 8.204_49, 0.078_688)) < DKW_99);
    assert!(lengths[lengths.len() - 1] <= 250);
}

#[test]
fn expiry_times_belong_to_keys() {
    let exptime_s = IntegerDistribution::parse("0=1,10m..1h=3", seconds).expect("a law");
    let some = Workload { exptime_s, ..workload(1000, "10") };
    let tape = open(&some, 20_000);
    let mut of_key = vec![None; 1000];
    for j in 0..20_000 {
        let op = tape.op(j);
        let first = tape.run(&op).next().expect("each names a key") as usize;
        assert!(op.exptime_s == 0 || (600..=3600).contains(&op.exptime_s));
        assert_eq!(*of_key[first].get_or_insert(op.exptime_s), op.exptime_s, "key {first}");
    }
    let never = of_key.iter().flatten().filter(|s| **s == 0).count() as f64 / 1000.0;
    assert!((never - 0.25).abs() < 3.29 * (0.25 * 0.75 / 1000.0_f64).sqrt(), "{never}");
    assert_eq!(tape.exptime_s(), 0, "the prefill stores for the longest time, which is for ever");
    let bounded = Workload {
        exptime_s: IntegerDistribution::from(IntegerRange { low: 5, high: 90 }),
        ..some
    };
    assert_eq!(open(&bounded, 10).exptime_s(), 90);
}

#[test]
fn the_same_seed_gives_the_same_tape_for_each_distribution() {
    for distribution in ["gpareto:15:200:0.3", "gev:30:8:0.07", "lognormal:300:1", "1=1,5..9=2"] {
        let some = workload(1000, distribution);
        let schedule =
            Schedule::Open { arrivals: Arrivals::Poisson, rate: 1e5, duration_ns: 10_000_000 };
        let make = |seed| generate(&some, &schedule, seed).expect("a tape");
        assert_eq!(make(3), make(3), "{distribution}");
        assert_ne!(make(3), make(4), "{distribution}");
    }
}

#[test]
fn invalid_distributions_are_rejected() {
    for text in [
        "gpareto:1:2",
        "gpareto:0:-1:0.3",
        "gpareto:0:nan:1",
        "pareto:100:0",
        "gev:x:1:1",
        "lognormal:0:1",
        "lognormal:100:-1",
        "normal:1:2",
        "1=0",
        "1=2,,3=4",
        "5..1=2",
        "1=x",
        "",
        "=",
        "lognormal:1:inf",
    ] {
        assert!(text.parse::<IntegerDistribution>().is_err(), "{text}");
    }
    assert_eq!(IntegerDistribution::parse("1h", seconds), Ok(IntegerDistribution::fixed(3600)));
    assert!(IntegerDistribution::parse("1k", seconds).is_err());
}

#[test]
fn unbounded_sizes_are_cut_below_the_item_limit() {
    let drawn = sizes("lognormal:1000000:3");
    assert_eq!(drawn[drawn.len() - 1], 1_000_000);
}
