//! The search for the highest rate that meets an objective such as 'p99<1ms', by bisection.
//!
//! Its rules are those of `cachemark run --search` (`analysis/rate_search.py`): which rate is next, when a rate is
//! played again, and when the search ends.

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

/// What makes a window no answer about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpoiledBy {
    /// The load generator itself was late.
    Generator,
    /// Too few operations for the percentile of the objective.
    Few,
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
    pub spoiled_by: Option<SpoiledBy>,
}

impl Point {
    /// Whether the server meets the objective at this rate, as far as this window shows it.
    pub fn meets(&self) -> bool {
        self.misses_by.is_empty() && self.spoiled_by.is_none()
    }

    /// Whether the server misses the objective at this rate, as far as this window shows it.
    pub fn misses(&self) -> bool {
        !self.misses_by.is_empty() && self.spoiled_by.is_none()
    }
}

/// With a smaller share of its operations done, an open loop did not keep its schedule.
const DONE_SHARE_MIN: f64 = 0.99;
/// The search ends when its bounds differ by less than this share of the closed loop's rate.
const PRECISION: f64 = 0.03;
/// The best rate has to meet the objective twice, as it may have done so by chance.
const MEETS_NEEDED: usize = 2;
/// A window that says nothing about the server is played once more.
const SPOILED_PLAYS: usize = 2;
/// More than any search plays.
const PLAYS_MAX: usize = 32;

/// The result of a search: every play, in the order of rates. `best` is the highest rate that met the
/// objective twice, `above` the lowest one that was too high.
#[derive(Debug)]
pub struct Found {
    pub points: Vec<Point>,
    pub best: Option<f64>,
    pub above: f64,
}

/// Where a search stands; `next` is the rate that it plays next, `None` at its end.
struct Bounds {
    best: f64,
    above: f64,
    next: Option<f64>,
}

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
    let failed = if done < DONE_SHARE_MIN {
        Some(format!("{:.1} % of it done", 100.0 * done))
    } else if !may_fail(errors, ok + errors) {
        Some(format!("{errors} errors"))
    } else {
        None
    };
    let spoiled_by = if may_have_moved(&times, objective.percent, &result.metrics.generator_lag) {
        Some(SpoiledBy::Generator)
    } else if failed.is_none() && ok < least_ops(objective.percent) {
        Some(SpoiledBy::Few)
    } else {
        None
    };
    let too_slow = u128::from(objective_ns) >= objective.below.as_nanos();
    let slow = too_slow.then(|| format!("p{} {}", objective.percent, time(objective_ns)));
    let misses_by = failed.or(slow).unwrap_or_default();
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
        spoiled_by,
    }
}

/// The least number of operations with which a two-sided 95 % interval of a percentile is finite.
fn least_ops(percent: f64) -> u64 {
    (0.025_f64.ln() / (percent / 100.0).ln()).ceil() as u64
}

/// The share of the due operations that was done. With random arrivals, the number of due operations is not
/// exactly the rate times the window.
fn done_share(ok: u64, not: u64) -> f64 {
    ok as f64 / (ok + not).max(1) as f64
}

/// Try rates between 0 and `most`, the rate of a closed loop.
pub fn search(
    most: f64,
    mut play: impl FnMut(f64) -> Result<Point, String>,
) -> Result<Found, String> {
    let mut points: Vec<Point> = Vec::new();
    while let Some(rate) = bounds(most, &points).next.filter(|_| points.len() < PLAYS_MAX) {
        points.push(play(rate)?);
    }
    let ends = bounds(most, &points);
    points.sort_by(|a, b| a.wanted.total_cmp(&b.wanted));
    let best = (ends.best > 0.0 && ends.next.is_none()).then_some(ends.best);
    Ok(Found { points, best, above: ends.above })
}

fn bounds(most: f64, points: &[Point]) -> Bounds {
    let (mut best, mut above) = (0.0, most);
    while above - best > PRECISION * most {
        let rate = three_digits(f64::midpoint(best, above));
        if rate <= best || rate >= above {
            break;
        }
        match answer(points, rate) {
            None => return Bounds { best, above, next: Some(rate) },
            Some(true) => best = rate,
            Some(false) => above = rate,
        }
    }
    let met = plays(points, best).filter(|point| point.meets()).count();
    let next = (best > 0.0 && met < MEETS_NEEDED).then_some(best);
    Bounds { best, above, next }
}

/// Whether a rate met the objective; `None`: it is to be played, or once more.
fn answer(points: &[Point], rate: f64) -> Option<bool> {
    let spoiled = plays(points, rate).filter(|point| point.spoiled_by.is_some()).count();
    if plays(points, rate).any(Point::misses) || spoiled >= SPOILED_PLAYS {
        return Some(false);
    }
    plays(points, rate).any(Point::meets).then_some(true)
}

fn plays(points: &[Point], rate: f64) -> impl Iterator<Item = &Point> {
    points.iter().filter(move |point| point.wanted.total_cmp(&rate).is_eq())
}

fn three_digits(rate: f64) -> f64 {
    let unit = 10f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).round() * unit
}

impl Found {
    /// The play that decided about the rate above the best one: one that missed the objective, else the last.
    pub fn deciding(&self) -> Option<&Point> {
        let tried = || plays(&self.points, self.above);
        tried().find(|point| point.misses()).or_else(|| tried().last())
    }
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
            spoiled_by: None,
        }
    }

    fn searched(mut met: impl FnMut(f64) -> bool) -> Found {
        search(100_000.0, |rate| Ok(made(rate, met(rate)))).expect("no play fails")
    }

    #[test]
    fn the_search_converges_to_the_limit() {
        for limit in [2_000.0, 37_000.0, 50_000.0, 98_000.0] {
            let found = searched(|rate| rate <= limit);
            let best = found.best.unwrap_or(0.0);
            assert!(best <= limit && limit - best <= 3_101.0, "{best} for {limit}");
            let points = &found.points;
            assert!(points.is_sorted_by(|a, b| a.wanted <= b.wanted) && points.len() <= 10);
        }
    }

    #[test]
    fn the_best_rate_has_met_the_objective_twice() {
        let found = searched(|rate| rate <= 37_000.0);
        let best = found.best.expect("a rate");
        assert_eq!(plays(&found.points, best).filter(|point| point.meets()).count(), 2);
        // A rate that meets it once only is none, and the search goes on below it.
        let mut first = true;
        let fallen =
            searched(|rate| rate <= 37_000.0 && (rate < best || std::mem::take(&mut first)));
        assert!(fallen.best.expect("a rate") < best);
    }

    #[test]
    fn a_percentile_needs_its_number_of_operations() {
        assert_eq!([50.0, 90.0, 99.0, 99.9].map(least_ops), [6, 36, 368, 3688]);
    }

    #[test]
    fn a_short_window_may_have_fewer_arrivals_than_its_rate() {
        assert!(done_share(388, 0) >= DONE_SHARE_MIN && done_share(380, 8) < DONE_SHARE_MIN);
        assert!(done_share(0, 0) < DONE_SHARE_MIN);
    }

    #[test]
    fn if_no_rate_meets_the_objective_none_is_found() {
        assert!(searched(|_| false).best.is_none());
    }

    #[test]
    fn a_spoiled_window_is_no_answer_about_the_server() {
        for cause in [SpoiledBy::Generator, SpoiledBy::Few] {
            let spoiled =
                |rate| Ok(Point { spoiled_by: Some(cause), ..made(rate, rate < 20_000.0) });
            let found = search(100_000.0, spoiled).expect("no play fails");
            assert!(found.best.is_none());
            assert!(found.deciding().is_some_and(|point| point.spoiled_by == Some(cause)));
            // Played once more each, before the search goes on below.
            let mut twice = found.points.chunks(2);
            assert!(twice.all(|pair| pair[0].wanted.total_cmp(&pair[1].wanted).is_eq()));
        }
        let once = searched(|rate| rate < 20_000.0);
        assert!(once.deciding().is_some_and(|point| point.misses()));
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
