//! One line of the table: a quantity, its analytic answer, what was measured, how far they may be
//! apart.

use cachemark_load::percentile_ns;

use crate::trial::Played;
use crate::truth::{End, misplaced};

/// A histogram of 3 digits prints at most this much above the value.
pub const BUCKET: f64 = 1.0 / 1024.0;

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
    /// In the quantity's own unit.
    pub tolerance: f64,
}

impl Check {
    pub fn holds(&self) -> bool {
        (self.measured - self.expected).abs() <= self.tolerance
    }
}

/// The verdict that the orchestrator's rules must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    Overload,
    Invalid,
    NonStationary,
}

/// What a case found.
pub struct Findings {
    pub checks: Vec<Check>,
    /// The trial, for whoever wants to judge it again; a case about tapes alone has none.
    pub played: Option<Played>,
    pub verdict: Verdict,
}

impl Findings {
    /// Of a trial: whatever it is about, nothing may be lost and every time must be in its bucket.
    pub fn of(played: Played) -> Findings {
        let mut findings =
            Findings { checks: Vec::new(), played: Some(played), verdict: Verdict::Valid };
        findings.conserve();
        findings
    }

    /// Without a trial.
    pub fn bare() -> Findings {
        Findings { checks: Vec::new(), played: None, verdict: Verdict::Valid }
    }

    pub fn verdict(self, verdict: Verdict) -> Findings {
        Findings { verdict, ..self }
    }

    fn played(&self) -> &Played {
        self.played.as_ref().expect("a case with a trial")
    }

    fn conserve(&mut self) {
        let Played { result, truth, open_loop, thinks, .. } = self.played();
        let gets = self.played().gets();
        let metrics = &result.metrics;
        let lags_ns = match (open_loop, thinks) {
            (true, _) => truth.lags_ns(),
            // Who has thought sends at once: the world lets no time pass between the two.
            (false, true) => vec![0; truth.requests() as usize],
            (false, false) => Vec::new(),
        };
        let figures = [
            ("attempts", truth.requests(), gets.attempts),
            ("ok", truth.count(End::Answered), gets.ok),
            ("wrong values", truth.count(End::Wrong), gets.wrong_values),
            ("timeouts", truth.count(End::TimedOut), gets.errors[0]),
            ("lost with a connection", truth.count(End::Lost), gets.errors[1]),
            ("responses misplaced", 0, misplaced(&gets.response, &truth.responses_ns())),
            ("services misplaced", 0, misplaced(&gets.service, &truth.services_ns())),
            ("lags misplaced", 0, misplaced(&metrics.send_lag, &lags_ns)),
            ("parts misplaced", 0, parts_misplaced(self.played())),
        ];
        let checks = figures.map(|(name, expected, measured)| exact(name, expected, measured));
        self.checks.extend(checks);
    }

    pub fn check(mut self, check: Check) -> Findings {
        self.checks.push(check);
        self
    }

    /// A count that must be exactly that.
    pub fn exactly(
        self,
        quantity: &str,
        expected: u64,
        measured: impl Fn(&Played) -> u64,
    ) -> Findings {
        let measured = measured(self.played());
        self.check(exact(quantity, expected, measured))
    }

    /// A figure within a share of its answer.
    pub fn near(
        self,
        quantity: &str,
        unit: Unit,
        expected: f64,
        share: f64,
        measured: impl Fn(&Played) -> f64,
    ) -> Findings {
        let measured = measured(self.played());
        let tolerance = expected.abs() * share;
        self.check(Check { quantity: quantity.to_owned(), unit, expected, measured, tolerance })
    }

    /// Percentiles of the response time, within a bucket and `slack_ns`.
    pub fn responses(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> Findings {
        self.percentiles("response", slack_ns, expected_ns, |played, percent| {
            played.response_ns(percent)
        })
    }

    /// Percentiles of the service time.
    pub fn services(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> Findings {
        self.percentiles("service", slack_ns, expected_ns, |played, percent| {
            percentile_ns(&played.gets().service, percent)
        })
    }

    /// Percentiles of the send lag.
    pub fn lags(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> Findings {
        self.percentiles("lag", slack_ns, expected_ns, |played, percent| {
            percentile_ns(&played.result.metrics.send_lag, percent)
        })
    }

    /// Percentiles of the client's own part of the lag.
    pub fn own_lags(self, slack_ns: u64, expected_ns: &[(f64, u64)]) -> Findings {
        self.percentiles("own lag", slack_ns, expected_ns, |played, percent| {
            percentile_ns(&played.result.metrics.generator_lag, percent)
        })
    }

    /// The same where only a share of the answer is known: a sample has an error of its own.
    pub fn sampled(self, expected_ns: &[(f64, f64, f64)]) -> Findings {
        expected_ns.iter().fold(self, |findings, &(percent, expected_ns, share)| {
            let name = format!("response {}", named(percent));
            findings.near(&name, Unit::Ns, expected_ns, share + BUCKET, |played| {
                played.response_ns(percent) as f64
            })
        })
    }

    /// The mean response time, within a share.
    pub fn mean(self, expected_ns: f64, share: f64) -> Findings {
        self.near("response mean", Unit::Ns, expected_ns, share, |played| {
            played.gets().response.mean()
        })
    }

    fn percentiles(
        self,
        what: &str,
        slack_ns: u64,
        expected_ns: &[(f64, u64)],
        measured: impl Fn(&Played, f64) -> u64,
    ) -> Findings {
        expected_ns.iter().fold(self, |findings, &(percent, expected_ns)| {
            let expected = expected_ns as f64;
            let check = Check {
                quantity: format!("{what} {}", named(percent)),
                unit: Unit::Ns,
                expected,
                measured: measured(findings.played(), percent) as f64,
                tolerance: expected * BUCKET + slack_ns as f64,
            };
            findings.check(check)
        })
    }
}

/// How many response times are in another part of the window, or bucket of it, than they were.
fn parts_misplaced(played: &Played) -> u64 {
    let Some(sections) = &played.result.sections else { return played.truth.requests() };
    let exact_ns = played.truth.responses_by(sections.length_ns, sections.each.len());
    let parts = sections.each.iter().zip(&exact_ns);
    parts.map(|(part, exact_ns)| misplaced(&part.response, exact_ns)).sum()
}

/// A count that must be exactly that.
pub fn exact(quantity: &str, expected: u64, measured: u64) -> Check {
    Check {
        quantity: quantity.to_owned(),
        unit: Unit::Count,
        expected: expected as f64,
        measured: measured as f64,
        tolerance: 0.0,
    }
}

fn named(percent: f64) -> String {
    if percent == 100.0 { "max".to_owned() } else { format!("p{percent}") }
}
