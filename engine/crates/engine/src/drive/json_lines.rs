//! What `--json-lines` prints: the settings, every second, and the results.

use cachemark_load::{RunResult, percentile_ns};
use serde::Serialize;

use crate::drive::second::Second;
use crate::drive::table::smallest_sample;
use crate::drive::totals::{responses, succeeded};
use crate::process::print_compact_json;
use crate::worker::messages::Done;

/// How a window was played.
#[derive(Serialize)]
pub struct Settings<'a> {
    pub server: &'a str,
    pub threads: u64,
    pub connections: u64,
    pub depth: u64,
    pub io: &'static str,
    pub io_reason: &'static str,
    pub open_loop: bool,
    pub seed: u64,
    /// None if a trace is played once.
    pub duration_ms: Option<u64>,
    pub timeout_ms: u64,
}

/// A line; `event` says which one it is.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line<'a> {
    Begin(&'a Settings<'a>),
    Second(Second<'a>),
    Result(&'a Results<'a>),
}

/// The results of the whole window.
#[derive(Serialize)]
pub struct Results<'a> {
    /// Operations per second.
    rate: f64,
    ok: u64,
    failed: u64,
    /// Percentiles are None if there are too few operations for them, as in the table.
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    cpu_us_per_op: Option<f64>,
    /// Why the exit status is 1.
    problem: Option<&'a str>,
    warnings: &'a [String],
    /// Why hits and misses are not those of the workload: the counts are what was seen.
    hits_withheld: Option<&'a str>,
    measure: Done,
}

impl<'a> Results<'a> {
    pub fn new(
        result: &RunResult,
        measure: Done,
        problem: Option<&'a str>,
        warnings: &'a [String],
        hits_withheld: Option<&'a str>,
    ) -> Results<'a> {
        let times = responses(&result.metrics);
        let at = |percent| {
            (times.len() >= smallest_sample(percent)).then(|| percentile_ns(&times, percent))
        };
        let answered = result.metrics.ok();
        let ok = result.metrics.kinds().map(|(_, kind)| succeeded(kind)).sum::<u64>();
        let cpu_us = (result.cpu_user_ns + result.cpu_system_ns) as f64 / 1e3;
        Results {
            rate: ok as f64 * 1e9 / result.elapsed_ns.max(1) as f64,
            ok,
            failed: result.metrics.failed(),
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            cpu_us_per_op: (answered > 0).then(|| cpu_us / answered as f64),
            problem,
            warnings,
            hits_withheld,
            measure,
        }
    }
}

impl Line<'_> {
    /// Print it on stdout. If nobody reads that, the program ends.
    pub fn print(&self) {
        print_compact_json(self);
    }
}
