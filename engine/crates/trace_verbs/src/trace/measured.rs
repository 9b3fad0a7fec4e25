//! Measured rates of a server, by its threads and by callers, and what they say about another number of threads.

use std::collections::BTreeMap;
use std::path::Path;

use cachemark_fleet::{Count, LawRate, Limit, Measured, Scalability, ServerKind};
use serde::{Deserialize, Serialize};

use super::fleet_file;

/// The low end of a rate of the law: this number of standard errors below it.
const LOW_ERRORS: f64 = 2.0;

/// A run, and the rates that it measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    run: String,
    /// The objective of the rates, such as `p99<1ms`; empty for closed loops.
    objective: String,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    pub threads: u32,
    pub callers: u32,
    pub rate: f64,
    /// Its interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// CPU time of the server for a request.
    pub service_us: Option<f64>,
}

/// The law over the callers of a server with this number of threads.
#[derive(Serialize)]
pub(super) struct CallersLaw {
    pub threads: u32,
    pub law: Scalability,
    /// The callers above which the rate falls.
    pub peak: Option<f64>,
}

/// The rate of a kind of server.
#[derive(Serialize)]
pub(super) struct RateOfKind {
    pub kind: String,
    pub threads: u32,
    pub rate: f64,
    /// Hardly less than this; `None`: not known.
    pub low: Option<f64>,
    pub by_law: bool,
    /// The servers by rate if it is that low.
    pub servers_if_low: Option<usize>,
}

/// The rates of servers that a run measured.
#[derive(Serialize)]
pub(super) struct MeasuredRates {
    pub run: String,
    pub objective: String,
    pub points: Vec<Point>,
    pub threads_law: Option<Scalability>,
    pub callers_laws: Vec<CallersLaw>,
    pub kinds: Vec<RateOfKind>,
}

impl MeasuredRates {
    /// Read them. An error names the run.
    pub(super) fn read(path: &Path) -> Result<MeasuredRates, String> {
        let place = |error: String| format!("{}: {error}", path.display());
        let text = fleet_file::text_of(path)?;
        let of: Document = serde_json::from_str(&text).map_err(|error| place(error.to_string()))?;
        let is_rate = |point: &Point| point.rate > 0.0 && point.rate.is_finite();
        if of.points.is_empty() || !of.points.iter().all(is_rate) {
            return Err(format!("run {}: it measured no rate of a server", of.run));
        }
        let best = best_of_threads(&of.points);
        let sizes: Vec<Measured> = best.values().map(|of| measured(of.threads, of.rate)).collect();
        let callers_laws = best.keys().filter_map(|threads| callers_law(*threads, &of.points));
        Ok(MeasuredRates {
            threads_law: Scalability::fit(&sizes),
            callers_laws: callers_laws.collect(),
            run: of.run,
            objective: of.objective,
            points: of.points,
            kinds: Vec::new(),
        })
    }

    /// Give the kinds that have no rate theirs, and a service time if they have none.
    pub(super) fn add_to(&mut self, kinds: &mut [ServerKind]) -> Result<(), String> {
        let best = best_of_threads(&self.points);
        for kind in kinds.iter_mut().filter(|kind| kind.rate.is_none()) {
            let point = best.get(&kind.threads);
            let law = self.threads_law.as_ref().map(|law| law.rate(f64::from(kind.threads)));
            let (rate, low) = match (point, law) {
                (Some(point), _) => (point.rate, point.low),
                (None, Some(LawRate { rate, error })) => {
                    (rate, error.map(|error| (rate - LOW_ERRORS * error).max(0.0)))
                }
                (None, None) => return Err(self.missing(kind)),
            };
            kind.rate = Some(rate);
            if let (None, Some(us)) = (kind.service_s, point.and_then(|of| of.service_us)) {
                kind.service_s = Some(us / 1e6);
            }
            self.kinds.push(RateOfKind {
                kind: kind.name.clone(),
                threads: kind.threads,
                rate,
                low,
                by_law: point.is_none(),
                servers_if_low: None,
            });
        }
        Ok(())
    }

    /// Count the servers of each kind if its rate is at the low end.
    pub(super) fn count_if_low(
        &mut self,
        kinds: &[ServerKind],
        count: impl Fn(&[ServerKind]) -> Vec<Count>,
    ) {
        for of in &mut self.kinds {
            let kind = kinds.iter().find(|kind| kind.name == of.kind);
            let Some((kind, low)) = kind.zip(of.low.filter(|low| *low > 0.0)) else { continue };
            let counted = count(&[ServerKind { rate: Some(low), ..kind.clone() }]);
            let limits = counted.iter().flat_map(|count| &count.limits);
            let by_rate = limits
                .filter(|each| matches!(each.limit, Limit::Rate | Limit::Loss))
                .map(|each| each.servers);
            of.servers_if_low =
                by_rate.collect::<Option<Vec<_>>>().and_then(|of| of.into_iter().max());
        }
    }

    fn missing(&self, kind: &ServerKind) -> String {
        let known: Vec<String> = best_of_threads(&self.points).keys().map(u32::to_string).collect();
        format!(
            "run {}: it measured servers with {} threads, and {:?} has {}: measure those, or three numbers of threads",
            self.run,
            known.join(", "),
            kind.name,
            kind.threads
        )
    }
}

fn measured(size: u32, rate: f64) -> Measured {
    Measured { size: f64::from(size), rate }
}

/// The highest rate of each number of threads.
fn best_of_threads(points: &[Point]) -> BTreeMap<u32, Point> {
    let mut best: BTreeMap<u32, Point> = BTreeMap::new();
    for point in points {
        let of = best.entry(point.threads).or_insert(*point);
        if point.rate > of.rate {
            *of = *point;
        }
    }
    best
}

fn callers_law(threads: u32, points: &[Point]) -> Option<CallersLaw> {
    let of_threads = points.iter().filter(|point| point.threads == threads);
    let sizes: Vec<Measured> = of_threads.map(|of| measured(of.callers, of.rate)).collect();
    let law = Scalability::fit(&sizes)?;
    Some(CallersLaw { threads, peak: law.peak(), law })
}
