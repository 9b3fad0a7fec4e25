//! Reported values equal recorded values: for all magnitudes, and after merging.

use cachemark_load::percentile_ns;

use crate::check::{BUCKET_WIDTH, CaseResult, Check, Unit, exact};
use crate::script::after;
use crate::trial::{MS, SECOND, Trial};

/// 100 ns to 100 s, ten values per decade: each reported value is in [x, x·(1 + 1/1024)]. 0 is reported
/// as 1 ns, the lowest value. Times above 100 s are reported as 100 s and counted as overflow.
pub fn sweep() -> CaseResult {
    let mut case_result = CaseResult::without_trial();
    for step in 0..=90 {
        let x_ns = 100.0 * 10_f64.powf(f64::from(step) / 10.0);
        let (printed_ns, _) = printed(x_ns as u64);
        case_result = case_result.check(Check {
            quantity: "the same delay, printed".to_owned(),
            unit: Unit::Ns,
            expected: x_ns.floor() * (1.0 + BUCKET_WIDTH / 2.0),
            measured: printed_ns as f64,
            tolerance: x_ns.floor() * BUCKET_WIDTH / 2.0 + 0.5,
        });
    }
    let ten = Trial::closed(10).ops(10).with_connections(2, 3).play(after(MS));
    case_result = case_result.check(exact("operations asked for", 10, ten.gets().ok));
    let (zero, overflow_of_zero) = printed(0);
    let (above_max, overflow_of_max) = printed(150 * SECOND);
    case_result
        .check(exact("0 printed as", 1, zero))
        .check(exact("0 counted as above 100 s", 0, overflow_of_zero))
        .check(Check {
            quantity: "150 s printed as".to_owned(),
            unit: Unit::Ns,
            expected: 100e9,
            measured: above_max as f64,
            tolerance: 100e9 * BUCKET_WIDTH,
        })
        .check(exact("150 s counted as above 100 s", 10, overflow_of_max))
}

/// The median of ten operations with this delay, and how many were counted as overflow.
fn printed(delay_ns: u64) -> (u64, u64) {
    let trial = Trial::closed(10_000).ops(10).with_connections(1, 1).timeout(1000 * SECOND);
    let trial = trial.play(after(delay_ns));
    (percentile_ns(&trial.gets().response, 50.0), trial.result.metrics.overflow)
}

/// 50,000 times 1 ms and 50,000 times 10 ms: p50 = 1, p99 = 10. The average of percentiles would be
/// 5.5.
pub fn merged() -> CaseResult {
    let trial = Trial::uniform(10_000.0, 10).play_lanes(vec![after(MS), after(10 * MS)]);
    CaseResult::of(trial)
        .exactly("operations", 100_000, |trial| trial.gets().ok)
        .response_percentiles(0, &[(50.0, MS), (50.1, 10 * MS), (99.0, 10 * MS)])
}
