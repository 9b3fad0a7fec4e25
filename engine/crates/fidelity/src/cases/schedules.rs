//! The tape itself: arrivals and keys have the distributions that were asked for.

use cachemark_tape::{
    IntegerRange, KeyDistribution, KeyShape, Schedule, Tape, Workload, generate, parse_mix,
};

use crate::check::{CaseResult, Check, Unit, exact};
use crate::trial::Trial;

/// sup
///
/// F_n − F
///
/// of a million draws is below this in 99 % of cases (Dvoretzky–Kiefer–Wolfowitz).
const DKW: f64 = 0.00163;
const DRAWS: u64 = 1_000_000;

fn check_of(quantity: &str, unit: Unit, expected: f64, measured: f64, tolerance: f64) -> Check {
    Check { quantity: quantity.to_owned(), unit, expected, measured, tolerance }
}

/// The permitted error of the mean of a sample of 100,000: 3.29 σ, exceeded once in a thousand cases.
fn at_100_000(sigma: f64) -> f64 {
    3.29 * sigma / 100_000_f64.sqrt()
}

pub fn arrivals() -> CaseResult {
    let trial = Trial::poisson(10_000.0, 10);
    let tape = trial.tape();
    let gaps = gaps_ns(&tape);
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    let lagged = gaps.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>();
    let distribution = |gap: f64| 1.0 - (-gap / mean).exp();
    let equal = gaps_ns(&Trial::uniform(10_000.0, 10).tape());
    let uneven = equal.iter().filter(|gap| **gap != 100_000.0).count() as u64;
    let again = trial.tape();
    let moved = (0..tape.op_count()).filter(|j| tape.due_ns(*j) != again.due_ns(*j)).count();
    CaseResult::without_trial()
        .check(check_of(
            "Poisson arrivals",
            Unit::Count,
            100_000.0,
            tape.op_count() as f64,
            1_040.0,
        ))
        .check(check_of(
            "σ / mean of gaps",
            Unit::Ratio,
            1.0,
            variance.sqrt() / mean,
            at_100_000(1.0),
        ))
        .check(check_of(
            "correlation of next gaps",
            Unit::Ratio,
            0.0,
            lagged / count / variance,
            at_100_000(1.0),
        ))
        .check(check_of(
            "sup |F_n − F|",
            Unit::Ratio,
            0.0,
            max_distance(gaps, distribution),
            0.00515,
        ))
        .check(exact("equal gaps that are not 100 µs", 0, uneven))
        .check(exact("arrivals that the same seed moves", 0, moved as u64))
}

fn gaps_ns(tape: &Tape) -> Vec<f64> {
    (1..tape.op_count()).map(|j| (tape.due_ns(j) - tape.due_ns(j - 1)) as f64).collect()
}

/// The Kolmogorov–Smirnov distance between a sample and a distribution.
fn max_distance(mut sample: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let off = |(i, x): (usize, &f64)| {
        let expected = distribution(*x);
        (expected - i as f64 / count).abs().max(((i + 1) as f64 / count - expected).abs())
    };
    sample.iter().enumerate().map(off).fold(0.0, f64::max)
}

/// In a true Zipf distribution the first k keys have the share Σ i^−s of all operations.
pub fn zipf() -> CaseResult {
    let shares = shares(KeyDistribution::Zipf(0.99), 1_000_000);
    let mass = |ranks: u32| (1..=ranks).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>();
    [("key", 1), ("100", 100), ("1,000", 1000)].into_iter().fold(
        CaseResult::without_trial(),
        |case_result, (name, ranks)| {
            let of_tape = shares[..ranks as usize].iter().sum();
            let expected = mass(ranks) / mass(1_000_000);
            let quantity = format!("share of the hottest {name}");
            // The sample is sorted by frequency, which favours keys that came often by chance.
            case_result.check(check_of(&quantity, Unit::Ratio, expected, of_tape, 2.0 * DKW))
        },
    )
}

pub fn uniform_keys() -> CaseResult {
    let mut shares = shares(KeyDistribution::Uniform, 100);
    shares.sort_by(f64::total_cmp);
    let sigma = (0.01 * 0.99 / DRAWS as f64).sqrt();
    // The extremes of a hundred keys: 4.4 σ, exceeded once in a thousand cases.
    CaseResult::without_trial()
        .check(check_of("share of the rarest of 100", Unit::Ratio, 0.01, shares[0], 4.4 * sigma))
        .check(check_of("share of the hottest of 100", Unit::Ratio, 0.01, shares[99], 4.4 * sigma))
}

/// The share of the operations that each key has, largest first.
fn shares(distribution: KeyDistribution, keys: u32) -> Vec<f64> {
    let workload = Workload {
        keys,
        distribution,
        shape: KeyShape::Length(IntegerRange { low: 8, high: 8 }.into()),
        size: IntegerRange { low: 0, high: 0 }.into(),
        mix: parse_mix("get").expect("a mix"),
        run: 1,
        prefill: 0.0,
        ..Workload::default()
    };
    let bytes = generate(&workload, &Schedule::closed(DRAWS), 1).expect("a tape");
    let tape = Tape::from_bytes(bytes).expect("our own tape");
    let mut counts = vec![0_u32; keys as usize];
    for j in 0..tape.op_count() {
        counts[tape.op(j).key as usize] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.into_iter().map(|count| f64::from(count) / DRAWS as f64).collect()
}
