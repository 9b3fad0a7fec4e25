//! Warnings that a window may not show what the server can do: because of the load generator, its connections
//! or its sockets.

use cachemark_load::{RunResult, percentile_ns};

use crate::drive::format::time;
use crate::drive::totals::{hits, responses};

/// A closed loop is limited by its threads if they are this busy.
const BUSY: f64 = 0.95;

/// A closed loop was cut short if this share at the end of its window has no operation.
const SILENT: f64 = 0.1;

/// A hit ratio may differ by this, in addition to four standard deviations.
const RATIO_SLACK: f64 = 0.01;

/// What is expected of a window.
pub struct Expected {
    pub open_loop: bool,
    pub threads: u64,
    pub hit_ratio: Option<f64>,
    /// The length of a closed loop without think times.
    pub length_ns: Option<u64>,
}

/// The warnings, one sentence each.
pub fn warnings(result: &RunResult, expected: &Expected) -> Vec<String> {
    let Expected { open_loop, threads, hit_ratio, length_ns } = *expected;
    let metrics = &result.metrics;
    let attempts: u64 = metrics.kinds().map(|(_, kind)| kind.attempts).sum();
    let mut warnings = Vec::new();
    let busy = (result.cpu_user_ns + result.cpu_system_ns) as f64
        / (result.elapsed_ns.max(1) * threads) as f64;
    // In an open loop, threads spin before an operation is due, so that CPU time says nothing; there the
    // generator's own lag counts.
    if !open_loop && busy > BUSY {
        warnings.push(format!(
            "the load generator was the limit: its threads used {:.0} % of a CPU each; use more --threads",
            busy * 100.0
        ));
    }
    let late_ns = percentile_ns(&metrics.generator_lag, 99.9);
    let reported_ns = percentile_ns(&responses(metrics), 99.9);
    if open_loop && late_ns > (reported_ns / 20).max(100_000) {
        warnings.push(format!(
            "the load generator itself was late, p99.9 {}: use more --threads or CPUs, or a lower rate",
            time(late_ns)
        ));
    }
    if metrics.queued > 0 {
        warnings.push(format!(
            "{:.1} % of the operations were due but waited for a free connection: use more \
             --connections or a higher --depth to measure the server",
            100.0 * metrics.queued as f64 / (attempts + metrics.unsent).max(1) as f64
        ));
    }
    if metrics.kinds().any(|(_, kind)| kind.wrong_values > 0) {
        warnings.push(
            "wrong values: an earlier run with other sizes may have stored the same keys; empty the \
             server first (flush_all), or use other keys with --key-pattern"
                .to_owned(),
        );
    }
    if let Some(text) = hit_ratio.and_then(|ratio| other_ratio(ratio, hits(metrics))) {
        warnings.push(text);
    }
    if let Some(text) = length_ns.and_then(|ns| cut_short(result.elapsed_ns, ns)) {
        warnings.push(text);
    }
    if metrics.unsent > 0 {
        warnings.push(format!("{} operations were due but never sent", metrics.unsent));
    }
    if metrics.blocked > 0 {
        warnings.push(format!(
            "{} writes found the socket's buffer full: the server did not read as fast as the client sent",
            metrics.blocked
        ));
    }
    warnings
}

/// Rates are computed for the time until the last operation ended, which may be long before the end of the
/// window.
fn cut_short(elapsed_ns: u64, length_ns: u64) -> Option<String> {
    let silent_ns = length_ns.saturating_sub(elapsed_ns);
    (silent_ns as f64 > SILENT * length_ns as f64).then(|| {
        format!(
            "no operation ended in the last {} of {}: the server was gone; ops/s is of the time before",
            time(silent_ns),
            time(length_ns)
        )
    })
}

/// The hit ratio is not the expected one: the server has keys of others, or has lost keys.
fn other_ratio(wanted: f64, (hits, misses): (u64, u64)) -> Option<String> {
    let reads = (hits + misses) as f64;
    let ratio = hits as f64 / reads;
    let chance = 4.0 * (wanted * (1.0 - wanted) / reads).sqrt();
    // Without reads the ratio is not a number, and the comparison is false.
    let off = (ratio - wanted).abs() > RATIO_SLACK + chance;
    let why = match ratio > wanted {
        true => "an earlier run may have stored other keys; empty the server first (flush_all)",
        false => "keys were evicted, expired or deleted",
    };
    off.then(|| {
        let (ratio, wanted) = (100.0 * ratio, 100.0 * wanted);
        format!("{ratio:.1} % of the reads hit, but {wanted:.1} % were expected: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_operations_at_its_end_was_cut_short() {
        assert_eq!(cut_short(10_000_000_000, 10_000_000_000), None);
        assert_eq!(cut_short(11_000_000_000, 10_000_000_000), None);
        assert_eq!(cut_short(9_500_000_000, 10_000_000_000), None);
        let text = cut_short(2_000_000_000, 10_000_000_000).expect("cut short");
        assert!(text.starts_with("no operation ended in the last 8.000 s of 10.000 s"), "{text}");
    }

    #[test]
    fn a_hit_ratio_may_differ_by_chance() {
        assert_eq!(other_ratio(0.8, (0, 0)), None);
        assert_eq!(other_ratio(0.8, (805, 195)), None);
        assert_eq!(other_ratio(0.8, (9, 1)), None);
        let above = other_ratio(0.8, (1000, 0)).expect("off");
        assert!(above.starts_with("100.0 % of the reads hit, but 80.0 % were expected"), "{above}");
        assert!(other_ratio(0.8, (5_000, 5_000)).expect("off").contains("evicted"));
    }
}
