//! Delays that do not depend on the load: the client must report exactly these.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, LogNormal};

use crate::check::{CaseResult, Unit, Verdict};
use crate::script::{Request, Script, ScriptedReply, after, delays};
use crate::trial::{MS, SECOND, Trial, US};

/// Every quantile equals the delay.
pub fn constant() -> CaseResult {
    let trial = Trial::uniform(10_000.0, 10).play(after(MS));
    CaseResult::of(trial)
        .response_percentiles(
            0,
            &[0.0, 50.0, 90.0, 99.0, 99.99, 100.0].map(|percent| (percent, MS)),
        )
        .mean(MS as f64, 0.001)
}

/// The rank of a percentile is ceil(p·n): with 1 % slow requests, p99 is fast and p99.1 is slow.
pub fn bimodal() -> CaseResult {
    let each_100th = delays(|number| if number % 100 == 99 { 10 * MS } else { MS });
    let small = Trial::uniform(10_000.0, 1).ops(1000).with_connections(64, 1);
    let ranks = small.play(delays(|number| if number % 100 == 99 { 10 * MS } else { MS }));
    let trial = Trial::uniform(10_000.0, 10).with_connections(64, 1).play(each_100th);
    let case_result = CaseResult::of(trial)
        .response_percentiles(0, &[(50.0, MS), (99.0, MS), (99.1, 10 * MS), (99.9, 10 * MS)])
        .mean(1.09 * MS as f64, 0.001)
        .within("response σ", Unit::Ns, 0.8955 * MS as f64, 0.001, |trial| {
            trial.gets().response.stdev()
        });
    // 990 fast and 10 slow requests: the ranks on both sides of the step.
    let of_ranks = CaseResult::of(ranks).response_percentiles(0, &[(99.0, MS), (99.1, 10 * MS)]);
    of_ranks.checks.into_iter().fold(case_result, CaseResult::check)
}

/// A quantile of the exponential distribution: −ln(1 − p) times its mean.
pub fn exponential_ns(share: f64, mean_ns: u64) -> f64 {
    -(1.0 - share).ln() * mean_ns as f64
}

/// M/G/∞: the quantiles equal the delay's, −ln(1 − p) ms. By Little's law, λ·E = 10 in flight.
pub fn exponential() -> CaseResult {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let delay = delays(move |_| {
        let share: f64 = Exp1.sample(&mut rng);
        (share * MS as f64) as u64
    });
    let trial = Trial::poisson(10_000.0, 100).with_connections(64, 1).play(delay);
    CaseResult::of(trial)
        .sampled(&[
            (50.0, exponential_ns(0.5, MS), 0.0048),
            (90.0, exponential_ns(0.9, MS), 0.0043),
            (99.0, exponential_ns(0.99, MS), 0.0071),
            (99.9, exponential_ns(0.999, MS), 0.015),
        ])
        .exactly("waited for a connection", 0, |trial| trial.result.metrics.queued)
        .within("mean in flight", Unit::Ratio, 10.0, 0.01, |trial| {
            trial.gets().busy_ns as f64 / trial.result.elapsed_ns as f64
        })
}

/// Quantiles e^z ms, mean e^½ ms.
pub fn lognormal() -> CaseResult {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let distribution = LogNormal::new(0.0, 1.0).expect("a law");
    let delay = delays(move |_| (distribution.sample(&mut rng) * MS as f64) as u64);
    let trial = Trial::uniform(1_000.0, 1000).with_connections(32, 1).play(delay);
    let ms = MS as f64;
    CaseResult::of(trial)
        .sampled(&[(50.0, ms, 0.0041), (99.0, 10.240 * ms, 0.012), (99.9, 21.982 * ms, 0.031)])
        .mean(1.6487 * ms, 0.005)
}

/// The wall clock is set four times in the window, by one second forwards or backwards. No measurement
/// may depend on it: nothing is early, late, lost or timed out, and the schedule is kept.
pub fn wall_clock() -> CaseResult {
    let trial = Trial::uniform(1_000.0, 12).timeout(500 * MS).play(after(MS));
    CaseResult::of(trial)
        .exactly("operations", 12_000, |trial| trial.gets().ok)
        .exactly("unsent", 0, |trial| trial.result.metrics.unsent)
        .exactly("elapsed", 12_000 * MS, |trial| trial.result.elapsed_ns)
        .response_percentiles(0, &[0.0, 50.0, 99.0, 100.0].map(|percent| (percent, MS)))
        .service_percentiles(0, &[(0.0, MS), (100.0, MS)])
        .send_lag_percentiles(1, &[(100.0, 0)])
        .mean(MS as f64, 0.001)
}

/// 10 ms for the first 5 s, then 1 ms.
fn slow_first() -> Script {
    Box::new(|request| {
        let delay_ns = if request.at_ns < 5 * SECOND { 10 * MS } else { MS };
        ScriptedReply::At(request.at_ns + delay_ns)
    })
}

/// 5 s at 10 ms, then 1 ms: the window after a warm-up of 5 s contains only 1 ms.
pub fn warmup() -> CaseResult {
    let trial = Trial::uniform(1_000.0, 25).warmup(5 * SECOND).play(slow_first());
    CaseResult::of(trial)
        .exactly("operations", 25_000, |trial| trial.gets().ok)
        .response_percentiles(0, &[(50.0, MS), (90.0, MS), (100.0, MS)])
        .mean(MS as f64, 0.001)
}

/// The same without a warm-up: the percentiles cover the whole window, and the timeline shows the warm-up. That is a
/// note, as a change of level is.
pub fn warmup_counted() -> CaseResult {
    let trial = Trial::uniform(1_000.0, 30).play(slow_first());
    CaseResult::of(trial)
        .response_percentiles(0, &[(50.0, MS), (90.0, 10 * MS)])
        .mean(2.5 * MS as f64, 0.001)
}

/// The first half at 1 ms, the second half at 2 ms.
pub fn regimes() -> CaseResult {
    let slow_last = Box::new(|request: &Request| {
        let delay_ns = if request.at_ns < 15 * SECOND { MS } else { 2 * MS };
        ScriptedReply::At(request.at_ns + delay_ns)
    });
    CaseResult::of(Trial::uniform(1_000.0, 30).play(slow_last))
        .response_percentiles(0, &[(50.0, MS), (50.1, 2 * MS)])
        .mean(1.5 * MS as f64, 0.001)
}

/// No step, but a drift: 1 ms, and 1/30 ms more each second. In a longer window the percentiles would be
/// higher, so the window is not stationary.
pub fn drift() -> CaseResult {
    let slower = Box::new(|request: &Request| {
        ScriptedReply::At(request.at_ns + MS + request.at_ns / (30 * 1_000))
    });
    CaseResult::of(Trial::uniform(1_000.0, 30).play(slower))
        .response_percentiles(30 * US, &[(50.0, 1_500 * US), (100.0, 2 * MS)])
        .mean(1.5 * MS as f64, 0.001)
        .verdict(Verdict::NonStationary)
}
