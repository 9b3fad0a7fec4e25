//! One second of a phase, as a line for people and as JSON.

use cachemark_command::times::time;
use cachemark_load::{Interval, percentile_ns};
use serde::Serialize;

use crate::drive::totals::{hits, responses};

/// One second of a phase.
#[derive(Serialize)]
pub struct Second<'a> {
    pub phase: &'a str,
    /// The first one is 1.
    pub second: u32,
    /// Operations per second.
    pub rate: f64,
    /// Failed operations since the phase began.
    pub failed: u64,
    /// CPU time of the load generator; 100 is one CPU.
    pub cpu_percent: f64,
    /// The tape was played to its end, and begun again: hits are of keys of earlier passes.
    pub tape_repeated: bool,
    /// None if replies are not known within the second.
    #[serde(flatten)]
    pub recorded: Option<Recorded>,
}

/// The records of all threads in a second. Percentiles are None if nothing was recorded.
#[derive(Serialize)]
pub struct Recorded {
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    hits: u64,
    misses: u64,
    send_lag_p99_ns: Option<u64>,
}

impl Recorded {
    pub fn new(interval: &Interval) -> Recorded {
        let times = responses(&interval.metrics);
        let lag = &interval.metrics.send_lag;
        let at = |percent| (!times.is_empty()).then(|| percentile_ns(&times, percent));
        let (hits, misses) = hits(&interval.metrics);
        Recorded {
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            hits,
            misses,
            send_lag_p99_ns: (!lag.is_empty()).then(|| percentile_ns(lag, 99.0)),
        }
    }
}

impl Second<'_> {
    /// The line for people. `why`: why it has no percentiles.
    pub fn text(&self, why: &str) -> String {
        let mut line = format!("{} {} s: {:.0} ops/s", self.phase, self.second, self.rate);
        if let Some(recorded) = &self.recorded {
            let times =
                [(recorded.p50_ns, "p50"), (recorded.p99_ns, "p99"), (recorded.p999_ns, "p99.9")];
            for (ns, name) in times {
                line += &ns.map_or_else(String::new, |ns| format!(", {name} {}", time(ns)));
            }
            let Recorded { hits, misses, .. } = *recorded;
            if hits + misses > 0 {
                line += &format!(", hits {:.1} %", 100.0 * hits as f64 / (hits + misses) as f64);
                line += if self.tape_repeated { " (the tape is repeated)" } else { "" };
            }
        }
        line += &format!(", {} errors", self.failed);
        if let Some(ns) = self.recorded.as_ref().and_then(|recorded| recorded.send_lag_p99_ns) {
            line += &format!(", lag p99 {}", time(ns));
        }
        line + &format!(", CPU {:.0} %{why}", self.cpu_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(recorded: Option<Recorded>) -> Second<'static> {
        let (phase, second, rate, failed, cpu_percent) = ("measure", 3, 1200.4, 1, 50.0);
        Second { phase, second, rate, failed, cpu_percent, tape_repeated: true, recorded }
    }

    #[test]
    fn a_line_without_percentiles_says_why() {
        let text = second(None).text(" (percentiles at the end)");
        assert_eq!(text, "measure 3 s: 1200 ops/s, 1 errors, CPU 50 % (percentiles at the end)");
    }

    #[test]
    fn a_line_has_what_was_recorded() {
        let recorded = Recorded {
            p50_ns: Some(100_000),
            p99_ns: Some(900_000),
            p999_ns: Some(2_000_000),
            hits: 3,
            misses: 1,
            send_lag_p99_ns: None,
        };
        let text = second(Some(recorded)).text("");
        let times = "p50 100.0 µs, p99 900.0 µs, p99.9 2.00 ms";
        assert_eq!(
            text,
            format!(
                "measure 3 s: 1200 ops/s, {times}, hits 75.0 % (the tape is repeated), 1 errors, CPU 50 %"
            )
        );
    }
}
