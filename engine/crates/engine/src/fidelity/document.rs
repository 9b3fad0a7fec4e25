//! The JSON document of a case.

use cachemark_fidelity::{Case, CaseResult, Check, Unit, Verdict};
use serde::Serialize;

use crate::worker::messages::{Done, Phase};

#[derive(Serialize)]
pub struct Document<'a> {
    case: &'a str,
    title: &'a str,
    holds: bool,
    checks: Vec<Row<'a>>,
    verdict: &'a str,
    open_loop: bool,
    window_ns: u64,
    /// How many gets the scripted server received, as `stats` would report.
    server_gets: u64,
    measure: Option<Done>,
}

#[derive(Serialize)]
struct Row<'a> {
    quantity: &'a str,
    unit: &'a str,
    expected: f64,
    measured: f64,
    tolerance: f64,
}

/// The document of a case that was played.
pub fn document<'a>(case: &'a Case, case_result: &'a CaseResult) -> Document<'a> {
    let row = |check: &'a Check| Row {
        quantity: &check.quantity,
        unit: match check.unit {
            Unit::Ns => "ns",
            Unit::Count => "count",
            Unit::PerSecond => "1/s",
            Unit::Ratio => "",
        },
        expected: check.expected,
        measured: check.measured,
        tolerance: check.tolerance,
    };
    let trial = case_result.trial.as_ref();
    Document {
        case: case.id,
        title: case.title,
        holds: case_result.checks.iter().all(Check::holds),
        checks: case_result.checks.iter().map(row).collect(),
        verdict: match case_result.verdict {
            Verdict::Valid => "VALID",
            Verdict::Overload => "OVERLOAD",
            Verdict::Invalid => "INVALID",
            Verdict::NonStationary => "NON_STATIONARY",
        },
        open_loop: trial.is_some_and(|trial| trial.open_loop),
        window_ns: trial.map_or(0, |trial| trial.window_ns),
        server_gets: trial.map_or(0, |trial| trial.ground_truth.requests()),
        measure: trial.map(|trial| Done::new(Phase::Measure, &trial.result)),
    }
}
