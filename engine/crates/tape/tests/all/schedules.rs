//! Schedules against renewal theory: counts, gaps and correlation (case F19).

use cachemark_tape::{
    Arrivals, IntegerDistribution, KeyShape, Schedule, Tape, Think, Workload, generate, parse_mix,
};

fn workload() -> Workload {
    Workload {
        keys: 10,
        shape: KeyShape::Length(IntegerDistribution::fixed(8)),
        size: IntegerDistribution::fixed(10),
        mix: parse_mix("get").expect("a mix"),
        run: 1,
        ..Workload::default()
    }
}

fn open(schedule: Schedule) -> Tape {
    let bytes = generate(&workload(), &schedule, 1).expect("a schedule that can be made");
    Tape::from_bytes(bytes).expect("our own tape")
}

struct Gaps {
    count: f64,
    mean_ns: f64,
    /// Standard deviation ÷ mean.
    cv: f64,
    /// The correlation of neighbouring gaps.
    lag_1: f64,
    sorted_ns: Vec<f64>,
}

fn gaps(arrivals: &str, rate: f64, seconds: u64) -> Gaps {
    let arrivals: Arrivals = arrivals.parse().expect("arrivals");
    let tape = open(Schedule::Open { arrivals, rate, duration_ns: seconds * 1_000_000_000 });
    let times: Vec<f64> = (0..tape.op_count()).map(|j| tape.due_ns(j) as f64).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = gaps.len() as f64;
    let mean_ns = gaps.iter().sum::<f64>() / count;
    let moment = |lag: usize| {
        let pairs = gaps.iter().zip(&gaps[lag..]);
        pairs.map(|(a, b)| (a - mean_ns) * (b - mean_ns)).sum::<f64>() / count
    };
    let (cv, lag_1) = (moment(0).sqrt() / mean_ns, moment(1) / moment(0));
    gaps.sort_by(f64::total_cmp);
    Gaps { count: tape.op_count() as f64, mean_ns, cv, lag_1, sorted_ns: gaps }
}

fn distance(sorted: &[f64], law: impl Fn(f64) -> f64) -> f64 {
    let whole = sorted.len() as f64;
    let each = sorted.iter().enumerate();
    each.map(|(at, x)| ((at + 1) as f64 / whole - law(*x + 0.5)).abs()).fold(0.0, f64::max)
}

#[test]
fn poisson_gaps_are_exponential() {
    let gaps = gaps("poisson", 10_000.0, 10);
    assert!((gaps.count - 100_000.0).abs() < 1040.0, "{}", gaps.count);
    assert!((gaps.cv - 1.0).abs() < 0.011, "{}", gaps.cv);
    assert!(gaps.lag_1.abs() < 0.0104, "{}", gaps.lag_1);
    // The limit of Dvoretzky, Kiefer and Wolfowitz for 10⁵ draws at 99 %.
    assert!(distance(&gaps.sorted_ns, |x| 1.0 - (-x / 100_000.0).exp()) < 0.00515);
}

#[test]
fn generalised_pareto_gaps_are_what_facebooks_pool_has() {
    let gaps = gaps("gpareto:0.154971", 10_000.0, 10);
    let cv = 1.0 / (1.0_f64 - 2.0 * 0.154_971).sqrt();
    assert!((cv - 1.204).abs() < 0.001);
    assert!((gaps.count - 100_000.0).abs() < 3.29 * cv * 100_000.0_f64.sqrt(), "{}", gaps.count);
    assert!((gaps.mean_ns - 100_000.0).abs() < 3.29 * cv * 100_000.0 / 100_000.0_f64.sqrt());
    assert!((gaps.cv - cv).abs() < 0.03, "{}", gaps.cv);
    assert!(gaps.lag_1.abs() < 0.0104, "{}", gaps.lag_1);
    let (scale, shape) = (100_000.0 * (1.0 - 0.154_971), 0.154_971);
    let law = |x: f64| 1.0 - (1.0 + shape * x / scale).powf(-1.0 / shape);
    assert!(distance(&gaps.sorted_ns, law) < 0.00515);
}

#[test]
fn a_shape_of_zero_is_poisson() {
    let gaps = gaps("gpareto:0", 10_000.0, 10);
    assert!((gaps.cv - 1.0).abs() < 0.011, "{}", gaps.cv);
}

type Matrix = [[f64; 2]; 2];

fn times(a: Matrix, b: Matrix) -> Matrix {
    let cell = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j];
    [[cell(0, 0), cell(0, 1)], [cell(1, 0), cell(1, 1)]]
}

fn inverse([[a, b], [c, d]]: Matrix) -> Matrix {
    let det = a * d - b * c;
    [[d / det, -b / det], [-c / det, a / det]]
}

/// φ · M · 1: the mean over the state that an arrival finds.
fn over(phi: [f64; 2], m: Matrix) -> f64 {
    phi[0] * (m[0][0] + m[0][1]) + phi[1] * (m[1][0] + m[1][1])
}

#[test]
fn bursts_are_a_two_state_markov_modulated_poisson_process() {
    // Fischer and Meier-Hellstern, The Markov-modulated Poisson process (MMPP) cookbook, 1993:
    // gaps from an arrival on, with D = Λ − Q: E X = φD⁻¹1, E X² = 2φD⁻²1, E X₀X₁ = φD⁻²ΛD⁻¹1.
    let (factor, share, burst, rate) = (5.0, 0.1, 100e-6, 100_000.0);
    let (high, low) = (rate * factor, rate * (1.0 - factor * share) / (1.0 - share));
    let (leave_high, leave_low) = (1.0 / burst, share / (1.0 - share) / burst);
    let d_inverse = inverse([[high + leave_high, -leave_high], [-leave_low, low + leave_low]]);
    let phi = [share * high / rate, (1.0 - share) * low / rate];
    let mean = over(phi, d_inverse);
    assert!((mean * rate - 1.0).abs() < 1e-9, "the mean rate is what was asked for");
    let squares = times(d_inverse, d_inverse);
    let variance = 2.0 * over(phi, squares) - mean * mean;
    let pairs = times(times(squares, [[high, 0.0], [0.0, low]]), d_inverse);
    let lag_1 = (over(phi, pairs) - mean * mean) / variance;
    let gaps = gaps("bursts:5:0.1:100us", rate, 10);
    // The index of dispersion of counts over a long window.
    let swing = (high - low).powi(2) * leave_high * leave_low;
    let idc = 1.0 + 2.0 * swing / ((leave_high + leave_low).powi(3) * rate);
    let deviation = (idc * rate * 10.0).sqrt();
    assert!((gaps.count - rate * 10.0).abs() < 3.29 * deviation, "{} ± {deviation}", gaps.count);
    let cv = variance.sqrt() / mean;
    assert!(cv > 1.2 && lag_1 > 0.05, "burstier than Poisson: {cv} {lag_1}");
    assert!((gaps.cv / cv - 1.0).abs() < 0.02, "{} for {cv}", gaps.cv);
    assert!((gaps.lag_1 - lag_1).abs() < 0.02, "{} for {lag_1}", gaps.lag_1);
}

#[test]
fn all_arrivals_may_be_in_bursts() {
    let gaps = gaps("bursts:10:0.1:1ms", 10_000.0, 10);
    assert!(gaps.cv > 3.0, "{}", gaps.cv);
    assert!((gaps.count / 100_000.0 - 1.0).abs() < 0.1, "{}", gaps.count);
}

#[test]
fn think_times_follow_the_schedule() {
    let thinks = |think: &str, ops: u64| {
        let think: Think = think.parse().expect("a think time");
        let tape = open(Schedule::Closed { ops, think });
        assert!(!tape.is_open_loop());
        (tape.has_think_times(), (0..ops).map(|j| tape.think_ns(j) as f64).collect::<Vec<_>>())
    };
    assert_eq!(thinks("0ms", 3), (false, vec![0.0; 3]));
    assert_eq!(thinks("1.5ms", 3), (true, vec![1_500_000.0; 3]));
    let (_, mut drawn) = thinks("exp:1ms", 100_000);
    drawn.sort_by(f64::total_cmp);
    assert!(distance(&drawn, |x| 1.0 - (-x / 1e6).exp()) < 0.00515);
}

#[test]
fn invalid_schedules_are_rejected() {
    for text in [
        "nonsense",
        "gpareto:1",
        "gpareto:-1",
        "gpareto:x",
        "bursts",
        "bursts:5:0.1",
        "bursts:0.5:0.1:1ms",
        "bursts:5:0.5:1ms",
        "bursts:5:0.1:1",
        "bursts:5:0:1ms",
        "uniform:1",
    ] {
        assert!(text.parse::<Arrivals>().is_err(), "{text}");
    }
    for text in ["1", "-1ms", "exp:", "exp:1", "x", "nanms", "99999999s"] {
        assert!(text.parse::<Think>().is_err(), "{text}");
    }
}
