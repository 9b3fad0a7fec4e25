//! The checks of a case: a quantity, its analytic value, the measured value, and the permitted
//! difference.

use cachemark_load::percentile_ns;

use crate::ground_truth::{RequestOutcome, in_wrong_bucket};
use crate::trial::TrialResult;

/// The relative width of a bucket of a histogram with 3 digits: a reported value is at most this much
/// too high.
pub const BUCKET_WIDTH: f64 = 1.0 / 1024.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Ns,
    Count,
    PerSecond,
    Ratio,
}

#[derive(Clone, Debug)]
pub struct Check {
    pub quantity: String,
    pub unit: Unit,
    pub expected: f64,
    pub measured: f64,
    /// In the unit of the quantity.
    pub tolerance: f64,
}

impl Check {
    pub fn holds(&self) -> bool {
        (self.measured - self.expected).abs() <= self.tolerance
    }
}

/// The verdict that the orchestrator must reach for this trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    Overload,
    Invalid,
    NonStationary,
}

/// The result of a case.
pub struct CaseResult {
    pub checks: Vec<Check>,
    /// The trial, so that the orchestrator can judge it again. `None` for a case that only inspects a
    /// tape.
    pub trial: Option<TrialResult>,
    pub verdict: Verdict,
}

impl CaseResult {
    /// The result of a case with a trial. In every trial, no operation may be lost, and every time must
    /// be in its bucket.
    pub fn of(trial: TrialResult) -> CaseResult {
        let mut case_result =
            CaseResult { checks: Vec::new(), trial: Some(trial), verdict: Verdict::Valid };
        case_result.check_conservation();
        case_result
    }

    /// The result of a case without a trial.
    pub fn without_trial() -> CaseResult {
        CaseResult { checks: Vec::new(), trial: None, verdict: Verdict::Valid }
    }

    pub fn verdict(self, verdict: Verdict) -> CaseResult {
        CaseResult { verdict, ..self }
    }

    fn trial(&self) -> &TrialResult {
        self.trial.as_ref().expect("a case with a trial")
    }

    fn check_conservation(&mut self) {
        let TrialResult { result, ground_truth, open_loop, thinks, .. } = self.trial();
        let gets = self.trial().gets();
        let metrics = &result.metrics;
        let lags_ns = match (open_loop, thinks) {
            (true, _) => ground_truth.lags_ns(),
            // After its think time an operation is sent at once: no simulated time passes in between.
            (false, true) => vec![0; ground_truth.requests() as usize],
            (false, false) => Vec::new(),
        };
        let counts = [
            ("attempts", ground_truth.requests(), gets.attempts),
            ("ok", ground_truth.count(RequestOutcome::Answered), gets.ok),
            ("wrong values", ground_truth.count(RequestOutcome::Wrong), gets.wrong_values),
            ("of another key", ground_truth.count(RequestOutcome::OtherKey), gets.errors[4]),
            ("timeouts", ground_truth.count(RequestOutcome::TimedOut), gets.errors[0]),
            (
                "lost with a connection",
                ground_truth.count(RequestOutcome::CutOff)
                    + ground_truth.count(RequestOutcome::Lost),
                gets.errors[1],
            ),
            (
                "responses misplaced",
                0,
                in_wrong_bucket(&gets.response, &ground_truth.responses_ns()),
            ),
            ("services misplaced", 0, in_wrong_bucket(&gets.service, &ground_truth.services_ns())),
            ("lags misplaced", 0, in_wrong_bucket(&metrics.send_lag, &lags_ns)),
            ("parts misplaced", 0, in_wrong_section(self.trial())),
        ];
        let checks = counts.map(|(name, expected, measured)| exact(name, expected, measured));
        self.checks.extend(checks);
    }

    pub fn check(mut self, check: Check) -> CaseResult {
        self.checks.push(check);
        self
    }

    /// A count that must match exactly.
    pub fn exactly(
        self,
        quantity: &str,
        expected: u64,
        measured: impl Fn(&TrialResult) -> u64,
    ) -> CaseResult {
        let measured = measured(self.trial());
        self.check(exact(quantity, expected, measured))
    }

    /// A value that must match within `share` of the expected one.
    pub fn within(
        self,
        quantity: &str,
        unit: Unit,
        expected: f64,
        share: f64,
        measured: impl Fn(&TrialResult) -> f64,
    ) -> CaseResult {
        let measured = measured(self.trial());
        let tolerance = expected.abs() * share;
        self.check(Check { quantity: quantity.to_owned(), unit, expected, measured, tolerance })
    }

    /// Percentiles of the response time. They must match within a bucket and `slack_ns`.
    pub fn response_percentiles(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> CaseResult {
        self.percentiles("response", slack_ns, expected_ns, |trial, percent| {
            trial.response_ns(percent)
        })
    }

    /// Percentiles of the service time.
    pub fn service_percentiles(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> CaseResult {
        self.percentiles("service", slack_ns, expected_ns, |trial, percent| {
            percentile_ns(&trial.gets().service, percent)
        })
    }

    /// Percentiles of the send lag.
    pub fn send_lag_percentiles(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> CaseResult {
        self.percentiles("lag", slack_ns, expected_ns, |trial, percent| {
            percentile_ns(&trial.result.metrics.send_lag, percent)
        })
    }

    /// Percentiles of the generator lag: the client's own part of the send lag.
    pub fn generator_lag_percentiles(
        self,
        slack_ns: u64,
        expected_ns: &[(f64, u64)],
    ) -> CaseResult {
        self.percentiles("own lag", slack_ns, expected_ns, |trial, percent| {
            percentile_ns(&trial.result.metrics.generator_lag, percent)
        })
    }

    /// How many groups there are, and percentiles of their times. All must equal the server's log.
    pub fn groups(self, count: u64, expected_ns: &[(f64, u64)]) -> CaseResult {
        let TrialResult { result, ground_truth, .. } = self.trial();
        let length = result.metrics.group_length.expect("a trial with groups");
        let exact_ns = ground_truth.groups_ns(length as usize);
        let misplaced = in_wrong_bucket(&result.metrics.groups, &exact_ns);
        self.check(exact("groups misplaced", 0, misplaced))
            .exactly("groups", count, |trial| trial.result.metrics.groups.len())
            .percentiles("group", 0, expected_ns, |trial, percent| {
                percentile_ns(&trial.result.metrics.groups, percent)
            })
    }

    /// Percentiles of the response time in a random sample. The third number is the permitted share,
    /// because a sample has an error of its own.
    pub fn sampled(self, expected_ns: &[(f64, f64, f64)]) -> CaseResult {
        expected_ns.iter().fold(self, |case_result, &(percent, expected_ns, share)| {
            let name = format!("response {}", percentile_name(percent));
            case_result.within(&name, Unit::Ns, expected_ns, share + BUCKET_WIDTH, |trial| {
                trial.response_ns(percent) as f64
            })
        })
    }

    /// The mean response time. It must match within `share`.
    pub fn mean(self, expected_ns: f64, share: f64) -> CaseResult {
        self.within("response mean", Unit::Ns, expected_ns, share, |trial| {
            trial.gets().response.mean()
        })
    }

    fn percentiles(
        self,
        what: &str,
        slack_ns: u64,
        expected_ns: &[(f64, u64)],
        measured: impl Fn(&TrialResult, f64) -> u64,
    ) -> CaseResult {
        expected_ns.iter().fold(self, |case_result, &(percent, expected_ns)| {
            let expected = expected_ns as f64;
            let check = Check {
                quantity: format!("{what} {}", percentile_name(percent)),
                unit: Unit::Ns,
                expected,
                measured: measured(case_result.trial(), percent) as f64,
                tolerance: expected * BUCKET_WIDTH + slack_ns as f64,
            };
            case_result.check(check)
        })
    }
}

/// How many response times are in the wrong section of the window, or in the wrong bucket.
fn in_wrong_section(trial: &TrialResult) -> u64 {
    let Some(sections) = &trial.result.sections else { return trial.ground_truth.requests() };
    let exact_ns = trial.ground_truth.responses_by(sections.length_ns, sections.each.len());
    let parts = sections.each.iter().zip(&exact_ns);
    parts.map(|(part, exact_ns)| in_wrong_bucket(&part.response, exact_ns)).sum()
}

/// A count that must match exactly.
pub fn exact(quantity: &str, expected: u64, measured: u64) -> Check {
    Check {
        quantity: quantity.to_owned(),
        unit: Unit::Count,
        expected: expected as f64,
        measured: measured as f64,
        tolerance: 0.0,
    }
}

fn percentile_name(percent: f64) -> String {
    if percent == 100.0 { "max".to_owned() } else { format!("p{percent}") }
}
