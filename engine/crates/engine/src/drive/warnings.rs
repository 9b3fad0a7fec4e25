//! What kept a run from showing the server, in words: the generator itself, its connections, its
//! sockets.

use cachemark_load::{RunResult, percentile_ns};

use crate::drive::format::time;
use crate::drive::totals::{hits, responses};

/// A closed loop whose threads are this busy is limited by them.
const BUSY: f64 = 0.95;

/// A closed loop that has nothing to show for so much of its window's end was cut short.
const SILENT: f64 = 0.1;

/// A hit ratio may be off by so much, besides four standard deviations of chance.
const RATIO_SLACK: f64 = 0.01;

/// What a window was meant to be.
pub struct Meant {
    pub open_loop: bool,
    pub threads: u64,
    pub hit_ratio: Option<f64>,
    /// Of a closed loop in which nobody thinks: how long it was to last.
    pub length_ns: Option<u64>,
}

/// Warnings, a sentence each.
pub fn warnings(result: &RunResult, meant: &Meant) -> Vec<String> {
    let Meant { open_loop, threads, hit_ratio, length_ns } = *meant;
    let metrics = &result.metrics;
    let attempts: u64 = metrics.kinds().map(|(_, kind)| kind.attempts).sum();
    let mut warnings = Vec::new();
    let busy = (result.cpu_user_ns + result.cpu_system_ns) as f64
        / (result.elapsed_ns.max(1) * threads) as f64;
    // In an open loop a thread spins the last stretch before an operation is due: there its own
    // lateness tells.
    if !open_loop && busy > BUSY {
        warnings.push(format!(
            "the generator was the limit: its threads took {:.0} % of a CPU each; use more --threads",
            busy * 100.0
        ));
    }
    let late_ns = percentile_ns(&metrics.generator_lag, 99.9);
    let reported_ns = percentile_ns(&responses(metrics), 99.9);
    if open_loop && late_ns > (reported_ns / 20).max(100_000) {
        warnings.push(format!(
            "the generator was late by itself, p99.9 {}: use more --threads or CPUs, or a lower rate",
            time(late_ns)
        ));
    }
    if metrics.queued > 0 {
        warnings.push(format!(
            "{:.1} % of the operations were due and waited for a connection with room: use more \
             --connections or a higher --depth, if the server is what is measured",
            100.0 * metrics.queued as f64 / (attempts + metrics.unsent).max(1) as f64
        ));
    }
    if metrics.kinds().any(|(_, kind)| kind.wrong_values > 0) {
        warnings.push(
            "wrong values: a run with other sizes may have left them under the same keys; empty the \
             server first (flush_all), or name other keys with --key-pattern"
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
        warnings.push(format!("{} operations were due and never sent", metrics.unsent));
    }
    if metrics.blocked > 0 {
        warnings.push(format!(
            "{} writes found the socket's buffer full: the server did not read as fast as was sent",
            metrics.blocked
        ));
    }
    warnings
}

/// Rates are of the time until the last operation ended, which may be long before the window's end.
fn cut_short(elapsed_ns: u64, length_ns: u64) -> Option<String> {
    let silent_ns = length_ns.saturating_sub(elapsed_ns);
    (silent_ns as f64 > SILENT * length_ns as f64).then(|| {
        format!(
            "nothing was done in the last {} of {}: the server was gone; ops/s is of the time before",
            time(silent_ns),
            time(length_ns)
        )
    })
}

/// The hit ratio that was asked for is not what came: others' keys are there, or keys are gone.
fn other_ratio(wanted: f64, (hits, misses): (u64, u64)) -> Option<String> {
    let reads = (hits + misses) as f64;
    let ratio = hits as f64 / reads;
    let chance = 4.0 * (wanted * (1.0 - wanted) / reads).sqrt();
    // Without reads the ratio is not a number, and nothing is off.
    let off = (ratio - wanted).abs() > RATIO_SLACK + chance;
    let why = match ratio > wanted {
        true => "an earlier run may have left the others: empty the server first (flush_all)",
        false => "keys were evicted, expired or deleted",
    };
    off.then(|| {
        let (ratio, wanted) = (100.0 * ratio, 100.0 * wanted);
        format!("{ratio:.1} % of the reads hit, and {wanted:.1} % were to: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_whose_end_is_silent_was_cut_short() {
        assert_eq!(cut_short(10_000_000_000, 10_000_000_000), None);
        assert_eq!(cut_short(11_000_000_000, 10_000_000_000), None);
        assert_eq!(cut_short(9_500_000_000, 10_000_000_000), None);
        let text = cut_short(2_000_000_000, 10_000_000_000).expect("cut short");
        assert!(text.starts_with("nothing was done in the last 8.000 s of 10.000 s"), "{text}");
    }

    #[test]
    fn a_hit_ratio_is_off_beyond_chance() {
        assert_eq!(other_ratio(0.8, (0, 0)), None);
        assert_eq!(other_ratio(0.8, (805, 195)), None);
        assert_eq!(other_ratio(0.8, (9, 1)), None);
        let above = other_ratio(0.8, (1000, 0)).expect("off");
        assert!(above.starts_with("100.0 % of the reads hit, and 80.0 % were to"), "{above}");
        assert!(other_ratio(0.8, (5_000, 5_000)).expect("off").contains("evicted"));
    }
}
