//! The table that `drive` prints.

use std::iter;

use crate::drive::errors::by_kind;
use crate::drive::format::time;
use crate::drive::search::{Found, Point, SpoiledBy};
use crate::drive::totals::{found, succeeded};
use crate::drive::verdict::LIMITED;
use cachemark_load::{KindMetrics, RunResult, percentile_ns};
use comfy_table::{CellAlignment, Table, presets};

/// The percentiles of the table, and the smallest sample for which a two-sided 95 % interval of each is finite:
/// n ≥ ln(0.025) / ln(p).
const PERCENTILES: [(f64, &str, u64); 4] =
    [(50.0, "p50", 6), (90.0, "p90", 36), (99.0, "p99", 368), (99.9, "p99.9", 3688)];

/// The smallest sample for which a percentile of the table is printed.
pub fn smallest_sample(percent: f64) -> u64 {
    PERCENTILES.iter().find(|(of, ..)| *of == percent).map_or(0, |(.., least)| *least)
}

/// The latency–throughput curve of a search, and its result.
pub fn curve(found: &Found, objective: &str) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["wanted/s", "done/s", "p50", "p99", "p99.9", "max", "errors", ""]);
    for point in &found.points {
        table.add_row([
            format!("{:.0}", point.wanted),
            format!("{:.0}", point.done),
            time(point.p50_ns),
            time(point.p99_ns),
            time(point.p999_ns),
            time(point.max_ns),
            point.errors.to_string(),
            shown(point),
        ]);
    }
    let most = format!("{:.0}", found.above);
    let why = found.deciding().map_or_else(
        || format!("a closed loop of the same connections does {most}, so more may do more"),
        |point| format!("at {most}: {}", shown(point)),
    );
    let answer = match found.best {
        Some(rate) => format!("meets {objective} up to {rate:.0} operations per second; {why}"),
        None => format!("no rate meets {objective}; {why}"),
    };
    format!("{}\n{answer}\n", table.trim_fmt())
}

/// What one play has shown, in the words of `cachemark run --search`.
fn shown(point: &Point) -> String {
    match point.spoiled_by {
        Some(SpoiledBy::Generator) => LIMITED.to_owned(),
        Some(SpoiledBy::Few) => "not judged, too few operations".to_owned(),
        None if point.misses_by.is_empty() => "met".to_owned(),
        None => point.misses_by.clone(),
    }
}

/// The results as text, which ends with a newline; without hits and misses if they are withheld.
pub fn render(result: &RunResult, open_loop: bool, hits_shown: bool, io: &str) -> String {
    let seconds = result.elapsed_ns as f64 / 1e9;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    // Such operations (add, replace, append, prepend, cas) were answered, but changed nothing.
    let refused = result.metrics.kinds().any(|(_, kind)| kind.not_stored > 0);
    let mut header = vec!["operation", "ok", "ops/s", "hits", "misses"];
    header.extend(refused.then_some("not stored"));
    header.extend(["errors", "response p50", "p90", "p99", "p99.9"]);
    header.extend(["max", "service p50", "p90", "p99", "p99.9", "max"]);
    table.set_header(&header);
    for (name, kind) in result.metrics.kinds() {
        table.add_row(row(name, kind, seconds, (refused, hits_shown)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text.push_str(&notes(result, open_loop, io));
    text
}

fn row(
    name: &str,
    kind: &KindMetrics,
    seconds: f64,
    (refused, hits_shown): (bool, bool),
) -> Vec<String> {
    let shown = |count: u64| if hits_shown { count.to_string() } else { "–".to_owned() };
    let mut row = vec![
        name.to_owned(),
        succeeded(kind).to_string(),
        format!("{:.0}", succeeded(kind) as f64 / seconds),
        shown(found(kind)),
        shown(kind.misses),
    ];
    row.extend(refused.then(|| kind.not_stored.to_string()));
    row.push(by_kind(iter::once(kind)));
    let at = |histogram: &hdrhistogram::Histogram<u64>, (percent, _, least): (f64, &str, u64)| {
        if histogram.len() < least {
            "–".to_owned()
        } else {
            time(percentile_ns(histogram, percent))
        }
    };
    row.extend(PERCENTILES.map(|percentile| at(&kind.response, percentile)));
    row.push(if kind.response.is_empty() { "–".to_owned() } else { time(kind.response.max()) });
    row.extend(PERCENTILES.map(|percentile| at(&kind.service, percentile)));
    row.push(if kind.service.is_empty() { "–".to_owned() } else { time(kind.service.max()) });
    row
}

fn notes(result: &RunResult, open_loop: bool, io: &str) -> String {
    let metrics = &result.metrics;
    let mut text = String::new();
    if open_loop {
        let lag = |percent| time(percentile_ns(&metrics.send_lag, percent));
        text += &format!(
            "open loop: response from the intended start; send lag p50 {}, p99 {}, p99.9 {}\n",
            lag(50.0),
            lag(99.0),
            lag(99.9)
        );
    } else {
        text += "closed loop: response times exclude waiting to send\n";
    }
    if metrics.overflow > 0 {
        text += &format!(
            "{} times were above 100 s, the upper bound of the histograms\n",
            metrics.overflow
        );
    }
    if metrics.reconnects > 0 {
        text += &format!("{} reconnects\n", metrics.reconnects);
    }
    let done = metrics.ok();
    if done > 0 {
        let cpu_us = (result.cpu_user_ns + result.cpu_system_ns) as f64 / 1e3 / done as f64;
        text += &format!("generator: {cpu_us:.2} µs of CPU per operation, by {io}\n");
    }
    text
}
