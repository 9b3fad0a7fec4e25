//! A server that serves requests one by one: queueing theory has the expected values.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use crate::cases::delays::exponential_ns;
use crate::check::{CaseResult, Unit, Verdict};
use crate::script::{after, delays, queue};
use crate::trial::{MS, SECOND, Trial, US};

const LARGE_DEPTH: usize = 1 << 14;

/// Sojourn times are exponential with rate μ − λ: q_p = −ln(1 − p) / (μ − λ).
pub fn mm1() -> CaseResult {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let service = queue(move |_| {
        let share: f64 = Exp1.sample(&mut rng);
        (share * 500.0 * US as f64) as u64
    });
    let trial = Trial::poisson(1_000.0, 1000).with_connections(1, LARGE_DEPTH).play(service);
    CaseResult::of(trial).mean(MS as f64, 0.009).sampled(&[
        (50.0, exponential_ns(0.5, MS), 0.009),
        (90.0, exponential_ns(0.9, MS), 0.015),
        (99.0, exponential_ns(0.99, MS), 0.021),
        (99.9, exponential_ns(0.999, MS), 0.049),
    ])
}

/// Mean s + ρs / 2(1 − ρ); quantiles from Crommelin's series.
pub fn md1_half() -> CaseResult {
    let ms = MS as f64;
    let trial = Trial::poisson(500.0, 2000).with_connections(1, LARGE_DEPTH).play(queue(|_| MS));
    CaseResult::of(trial).mean(1.5 * ms, 0.02).sampled(&[
        (90.0, 2.516 * ms, 0.02),
        (99.0, 4.336 * ms, 0.03),
        (99.9, 6.168 * ms, 0.06),
    ])
}

pub fn md1_busy() -> CaseResult {
    let ms = MS as f64;
    let trial = Trial::poisson(800.0, 1250).with_connections(1, LARGE_DEPTH).play(queue(|_| MS));
    CaseResult::of(trial).mean(3.0 * ms, 0.03).sampled(&[
        (90.0, 6.012 * ms, 0.04),
        (99.0, 11.356 * ms, 0.06),
        (99.9, 16.700 * ms, 0.06),
    ])
}

/// The same server with equal gaps between arrivals: every operation takes s.
pub fn dd1() -> CaseResult {
    let trial = Trial::uniform(500.0, 200).with_connections(1, LARGE_DEPTH).play(queue(|_| MS));
    CaseResult::of(trial)
        .response_percentiles(0, &[(0.0, MS), (50.0, MS), (99.9, MS), (100.0, MS)])
        .mean(MS as f64, 0.001)
}

/// L(t) = s + t·(λ/μ − 1): the response time grows during the window; there is no steady state.
pub fn overload() -> CaseResult {
    let service_ns = SECOND / 9_000;
    let trial = Trial::uniform(10_000.0, 10)
        .with_connections(1, LARGE_DEPTH)
        .play(queue(move |_| service_ns));
    let ms = MS as f64;
    CaseResult::of(trial)
        .sampled(&[
            (50.0, 555.7 * ms, 0.005),
            (99.0, 1100.1 * ms, 0.005),
            (100.0, 1111.2 * ms, 0.005),
        ])
        .within("served", Unit::PerSecond, 9_000.0, 0.005, |trial| {
            trial.gets().ok as f64 / trial.result.elapsed_ns as f64 * 1e9
        })
        .verdict(Verdict::Overload)
}

const C_NS: u64 = 10 * US;

/// Replies arrive in order: operations behind a slow one on the same connection wait for it.
fn slow_one(number: u64) -> u64 {
    if number.is_multiple_of(1000) { 10 * MS } else { C_NS }
}

/// One connection: a stall of 10 ms every 100 ms. Mean (S² + S·gap) / 2P + (1 − S/P)·c.
pub fn head_of_line() -> CaseResult {
    let trial =
        Trial::uniform(10_000.0, 10).with_connections(1, LARGE_DEPTH).play(delays(slow_one));
    let mean_ns = 505.0 * US as f64 + 0.9 * C_NS as f64;
    CaseResult::of(trial)
        .response_percentiles(100 * US, &[(95.0, 5 * MS), (99.0, 9 * MS), (99.9, 9_900 * US)])
        .response_percentiles(0, &[(89.9, C_NS)])
        .mean(mean_ns, 0.001)
}

/// Ten connections in turn: every tenth of those operations waits, for 10, 9 … 1 ms.
pub fn head_of_line_of_ten() -> CaseResult {
    let trial =
        Trial::uniform(10_000.0, 10).with_connections(10, LARGE_DEPTH).play(delays(slow_one));
    let mean_ns = 55.0 * US as f64 + 0.99 * C_NS as f64;
    CaseResult::of(trial)
        .response_percentiles(0, &[(98.9, C_NS), (99.5, 5 * MS), (99.9, 9 * MS)])
        .mean(mean_ns, 0.001)
}

/// X = 1/s and R = N·s. Little's law: N = X·R.
pub fn closed_loop() -> CaseResult {
    let trial = Trial::closed(10).with_connections(16, 1).play(queue(|_| 100 * US));
    CaseResult::of(trial)
        .within("rate", Unit::PerSecond, 10_000.0, 0.001, |trial| {
            trial.gets().ok as f64 / trial.result.elapsed_ns as f64 * 1e9
        })
        .response_percentiles(0, &[(50.0, 1600 * US), (99.9, 1600 * US)])
        .within("X · R", Unit::Ratio, 16.0, 0.002, |trial| {
            let seconds = trial.result.elapsed_ns as f64;
            trial.gets().ok as f64 / seconds * trial.gets().response.mean()
        })
        .exactly("most in flight", 16, |trial| trial.result.metrics.max_in_flight)
}

/// The interactive response time law: N callers perform N / (R + Z) operations per second. The server
/// serves any number at once, so no caller waits for others.
pub fn with_think_time() -> CaseResult {
    let trial = Trial::with_think_time(9 * MS, 10).with_connections(8, 2).play(after(MS));
    CaseResult::of(trial)
        .response_percentiles(0, &[(0.0, MS), (50.0, MS), (100.0, MS)])
        .send_lag_percentiles(0, &[(100.0, 1)])
        .exactly("operations", 16_000, |trial| trial.gets().ok)
        .exactly("most in flight", 16, |trial| trial.result.metrics.max_in_flight)
}
