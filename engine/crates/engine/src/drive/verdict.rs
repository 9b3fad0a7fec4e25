//! Whether a window shows what the server does: the rules of `cachemark run` for open loops.
//!
//! A late load generator delays some operations by some time. It is not known which ones. But if at most k
//! were delayed by more than t, then without that delay the time of rank r was at least the measured time
//! of rank r − k, less t. The best such bound says by how much a percentile can have moved.

use cachemark_load::{RunResult, percentile_ns};
use hdrhistogram::Histogram;

use crate::drive::format::time;
use crate::drive::totals::responses;

/// The percentiles that are judged, and the smallest sample of each.
const PERCENTILES: [(f64, u64); 4] = [(50.0, 6), (90.0, 36), (99.0, 368), (99.9, 3688)];
/// A percentile may have moved by this share of it, or by this long.
const SHARE: f64 = 0.05;
const FLOOR_NS: u64 = 100_000;

pub const LIMITED: &str = "limited by this generator, not by the server";

/// Why an open loop's window is INVALID: the generator may have moved every percentile. `None` if it is not.
pub fn invalid(result: &RunResult) -> Option<String> {
    let (times, lag) = (responses(&result.metrics), &result.metrics.generator_lag);
    let supported = PERCENTILES.into_iter().filter(|(_, least)| times.len() >= *least);
    let moved: Vec<(f64, u64)> =
        supported.map(|(percent, _)| (percent, moved_ns(&times, percent, lag))).collect();
    let all = moved.iter().all(|(percent, by)| *by > tolerance_ns(percentile_ns(&times, *percent)));
    let (percent, by) = *moved.last().filter(|_| all)?;
    Some(format!(
        "INVALID: {LIMITED}: it sent too late, which can have moved p{percent} by {}; use more \
         --threads or CPUs, or a lower rate",
        time(by)
    ))
}

/// Whether the generator's own lag can have moved a percentile too far.
pub fn may_have_moved(times: &Histogram<u64>, percent: f64, lag: &Histogram<u64>) -> bool {
    moved_ns(times, percent, lag) > tolerance_ns(percentile_ns(times, percent))
}

fn tolerance_ns(percentile_ns: u64) -> u64 {
    FLOOR_NS.max((SHARE * percentile_ns as f64).round() as u64)
}

/// By how much delays can have raised a percentile, at most.
fn moved_ns(times: &Histogram<u64>, percent: f64, delays: &Histogram<u64>) -> u64 {
    let measured_ns = percentile_ns(times, percent);
    let rank = ((percent / 100.0 * times.len() as f64 * (1.0 - 1e-12)).ceil() as u64).max(1);
    let mut above = delays.len();
    let mut least_ns = 0;
    for delay in delays.iter_recorded() {
        above -= delay.count_since_last_iteration();
        if rank > above {
            let over_ns = delays.highest_equivalent(delay.value_iterated_to());
            least_ns = least_ns.max(value_at(times, rank - above).saturating_sub(over_ns));
        }
    }
    if delays.is_empty() { 0 } else { measured_ns - measured_ns.min(least_ns) }
}

/// The value of a rank, from 1.
fn value_at(times: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for value in times.iter_recorded() {
        seen += value.count_since_last_iteration();
        if seen >= rank {
            return times.highest_equivalent(value.value_iterated_to());
        }
    }
    times.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = (u64, u64)>) -> Histogram<u64> {
        let mut made = Histogram::new(3).expect("three digits are valid");
        values.into_iter().for_each(|(ns, count)| made.record_n(ns, count).expect("in bounds"));
        made
    }

    #[test]
    fn a_generator_that_was_on_time_moves_nothing_too_far() {
        let times = of([(1_000_000, 990), (20_000_000, 10)]);
        assert!(!may_have_moved(&times, 99.0, &of([(1_000, 1000)])));
        assert!(!may_have_moved(&times, 99.0, &of([])));
    }

    #[test]
    fn a_late_generator_moves_the_percentiles_that_its_delays_can_reach() {
        // One operation in a hundred was sent 20 ms late.
        let (times, lag) =
            (of([(1_000_000, 990), (21_000_000, 10)]), of([(1_000, 990), (20_000_000, 10)]));
        assert!(may_have_moved(&times, 99.9, &lag));
        assert!(!may_have_moved(&times, 50.0, &lag));
        let all = of([(20_000_000, 1000)]);
        assert!(may_have_moved(&of([(21_000_000, 1000)]), 50.0, &all));
    }

    #[test]
    fn the_slow_times_of_a_server_are_its_own() {
        let times = of([(50_000_000, 1000)]);
        assert!(!may_have_moved(&times, 99.0, &of([(10_000, 995), (20_000_000, 5)])));
    }
}
