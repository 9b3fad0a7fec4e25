//! What is printed is what was recorded, at any size, and of several recorders together.

use cachemark_load::percentile_ns;

use crate::check::{BUCKET, CaseResult, Check, Unit, exact};
use crate::script::after;
use crate::trial::{MS, SECOND, Trial};

/// 100 ns to 100 s, ten a decade: what is printed lies in [x, x·(1 + 1/1024)]. 0 is printed as the
/// lowest, 1 ns; what is above 100 s as that, and it is told.
pub fn sweep() -> CaseResult {
    let mut case_result = CaseResult::without_trial();
    for step in 0..=90 {
        let x_ns = 100.0 * 10_f64.powf(f64::from(step) / 10.0);
        let (printed_ns, _) = printed(x_ns as u64);
        case_result = case_result.check(Check {
            quantity: "the same delay, printed".to_owned(),
            unit: Unit::Ns,
            expected: x_ns.floor() * (1.0 + BUCKET / 2.0),
            measured: printed_ns as f64,
            tolerance: x_ns.floor() * BUCKET / 2.0 + 0.5,
        });
    }
    let ten = Trial::closed(10).ops(10).with_connections(2, 3).play(after(MS));
    case_result = case_result.check(exact("operations asked for", 10, ten.gets().ok));
    let (nothing, of_nothing) = printed(0);
    let (beyond, of_beyond) = printed(150 * SECOND);
    case_result
        .check(exact("0 printed as", 1, nothing))
        .check(exact("0 told as above 100 s", 0, of_nothing))
        .check(Check {
            quantity: "150 s printed as".to_owned(),
            unit: Unit::Ns,
            expected: 100e9,
            measured: beyond as f64,
            tolerance: 100e9 * BUCKET,
        })
        .check(exact("150 s told as above 100 s", 10, of_beyond))
}

/// The median of ten operations that each take so long, and how many are told to be too long.
fn printed(delay_ns: u64) -> (u64, u64) {
    let trial = Trial::closed(10_000).ops(10).with_connections(1, 1).timeout(1000 * SECOND);
    let trial = trial.play(after(delay_ns));
    (percentile_ns(&trial.gets().response, 50.0), trial.result.metrics.overflow)
}

/// 50,000 of 1 ms and 50,000 of 10 ms: p50 = 1, p99 = 10; averaged percentiles would say 5.5.
pub fn merged() -> CaseResult {
    let trial = Trial::uniform(10_000.0, 10).play_lanes(vec![after(MS), after(10 * MS)]);
    CaseResult::of(trial)
        .exactly("operations", 100_000, |trial| trial.gets().ok)
        .response_percentiles(0, &[(50.0, MS), (50.1, 10 * MS), (99.0, 10 * MS)])
}
