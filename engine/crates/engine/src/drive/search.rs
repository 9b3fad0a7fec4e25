//! The search for the highest rate that meets an objective such as 'p99<1ms', by bisection.

use std::str::FromStr;
use std::time::Duration;

use cachemark_load::{RunResult, percentile_ns};
use serde::Serialize;

use crate::drive::format::time;
use crate::drive::totals::responses;
use crate::drive::verdict::may_have_moved;
use crate::options::units;

/// A percentile of the response time, and its upper bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    pub percent: f64,
    pub below: Duration,
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        let refuse = || format!("{text:?} is no objective; write p99<1ms");
        let (percentile, below) = text.split_once('<').ok_or_else(refuse)?;
        let percent = percentile.trim().strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
        let percent = percent.filter(|p| *p > 0.0 && *p < 100.0).ok_or_else(refuse)?;
        Ok(Objective { percent, below: units::duration(below)? })
    }
}

/// The result of one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    pub wanted: f64,
    pub done: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    /// The percentile of the objective.
    pub objective_ns: u64,
    pub errors: u64,
    /// Why the rate does not meet the objective; empty if it does.
    pub misses_by: String,
    /// Whether the load generator itself was late, so that the percentile says nothing about the server.
    pub generator_late: bool,
}

impl Point {
    /// Whether the server meets the objective at this rate, as far as this window shows it.
    pub fn meets(&self) -> bool {
        self.misses_by.is_empty() && !self.generator_late
    }
}

/// With a smaller share of its operations done, an open loop did not keep its schedule.
const DONE_SHARE_MIN: f64 = 0.99;
/// The search ends when the bounds differ by less than this share of the highest rate.
const PRECISION: f64 = 0.03;
const STEPS_MAX: usize = 10;

/// The result of an open loop with a rate.
pub fn point(
    wanted: f64,
    result: &RunResult,
    objective: Objective,
    may_fail: impl Fn(u64, u64) -> bool,
) -> Point {
    let times = responses(&result.metrics);
    let at = |percent| percentile_ns(&times, percent);
    let (ok, errors) = (result.metrics.ok(), result.metrics.failed());
    let objective_ns = at(objective.percent);
    let done = done_share(ok, errors + result.metrics.unsent);
    let misses_by = if done < DONE_SHARE_MIN {
        format!("{:.1} % of it done", 100.0 * done)
    } else if !may_fail(errors, ok + errors) {
        format!("{errors} errors")
    } else if u128::from(objective_ns) >= objective.below.as_nanos() {
        format!("p{} {}", objective.percent, time(objective_ns))
    } else {
        String::new()
    };
    let generator_late = may_have_moved(&times, objective.percent, &result.metrics.generator_lag);
    Point {
        wanted,
        done: ok as f64 * 1e9 / result.elapsed_ns.max(1) as f64,
        p50_ns: at(50.0),
        p99_ns: at(99.0),
        p999_ns: at(99.9),
        max_ns: times.max(),
        objective_ns,
        errors,
        misses_by,
        generator_late,
    }
}

/// The share of the due operations that was done. With random arrivals, the number of due operations is not
/// exactly the rate times the window.
fn done_share(ok: u64, not: u64) -> f64 {
    ok as f64 / (ok + not).max(1) as f64
}

/// Try rates between 0 and `most`, and return the results in the order of rates. The highest rate that meets
/// the objective is tried twice, because it may have met it by chance.
pub fn search(
    most: f64,
    mut play: impl FnMut(f64) -> Result<Point, String>,
) -> Result<Vec<Point>, String> {
    let mut points: Vec<Point> = Vec::new();
    let (mut met, mut missed) = (0.0, most);
    let mut rate = most / 2.0;
    for _ in 0..STEPS_MAX {
        let mut point = play(rate)?;
        if point.meets() && missed - rate <= PRECISION * most {
            point = play(rate)?;
        }
        match point.meets() {
            true => met = rate,
            false => missed = rate,
        }
        points.push(point);
        if missed - met <= PRECISION * most {
            break;
        }
        rate = f64::midpoint(met, missed);
    }
    points.sort_by(|a, b| a.wanted.total_cmp(&b.wanted));
    Ok(points)
}

/// The highest rate that met the objective, if all lower rates met it too.
pub fn best(points: &[Point]) -> Option<&Point> {
    points.iter().take_while(|point| point.meets()).last()
}

/// Whether the load generator, and not the server, is what missed the objective above the best rate.
pub fn limited_by_generator(points: &[Point]) -> bool {
    points.iter().find(|point| !point.meets()).is_some_and(|point| point.generator_late)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(wanted: f64, met: bool) -> Point {
        Point {
            wanted,
            done: wanted,
            p50_ns: 1,
            p99_ns: 1,
            p999_ns: 1,
            max_ns: 1,
            objective_ns: 1,
            errors: 0,
            misses_by: if met { String::new() } else { "p99".to_owned() },
            generator_late: false,
        }
    }

    #[test]
    fn the_search_converges_to_the_limit() {
        for limit in [2_000.0, 37_000.0, 50_000.0, 98_000.0] {
            let points =
                search(100_000.0, |rate| Ok(made(rate, rate <= limit))).expect("no play fails");
            let found = best(&points).map_or(0.0, |point| point.wanted);
            assert!(found <= limit && limit - found <= 3_001.0, "{found} for {limit}");
            assert!(points.is_sorted_by(|a, b| a.wanted <= b.wanted) && points.len() <= 10);
        }
    }

    #[test]
    fn a_short_window_may_have_fewer_arrivals_than_its_rate() {
        assert!(done_share(388, 0) >= DONE_SHARE_MIN && done_share(380, 8) < DONE_SHARE_MIN);
        assert!(done_share(0, 0) < DONE_SHARE_MIN);
    }

    #[test]
    fn if_no_rate_meets_the_objective_none_is_found() {
        let points = search(1000.0, |rate| Ok(made(rate, false))).expect("no play fails");
        assert!(best(&points).is_none());
    }

    #[test]
    fn a_late_generator_is_no_answer_about_the_server() {
        let late = |rate, met| Point { generator_late: true, ..made(rate, met) };
        assert!(best(&[late(100.0, true), made(200.0, false)]).is_none());
        assert!(limited_by_generator(&[made(100.0, true), late(200.0, false)]));
        assert!(!limited_by_generator(&[
            made(100.0, true),
            made(150.0, false),
            late(200.0, false)
        ]));
    }

    #[test]
    fn objectives_are_parsed() {
        let wanted = Objective { percent: 99.9, below: Duration::from_micros(500) };
        assert_eq!("p99.9<500us".parse(), Ok(wanted));
        for text in ["p99", "p99<1", "99<1ms", "p0<1ms", "p100<1ms", "p99>1ms", "p<1ms"] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }
}
