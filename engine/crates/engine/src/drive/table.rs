//! The table that `drive` prints: counts and percentiles as they were measured.

use std::iter;

use cachemark_command::times::time;
use cachemark_load::{KindMetrics, RunResult, percentile_ns};
use comfy_table::{CellAlignment, Table, presets};

use crate::drive::errors::by_kind;
use crate::drive::json_lines::Settings;
use crate::drive::totals::{attempts, found, succeeded};

const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The results as text, which ends with a newline.
pub fn render(result: &RunResult, settings: &Settings<'_>, warmup_ops: u64) -> String {
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
        table.add_row(row(name, kind, seconds, refused));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text.push_str(&notes(result, settings, warmup_ops));
    text
}

fn row(name: &str, kind: &KindMetrics, seconds: f64, refused: bool) -> Vec<String> {
    let mut row = vec![
        name.to_owned(),
        succeeded(kind).to_string(),
        format!("{:.0}", succeeded(kind) as f64 / seconds),
        found(kind).to_string(),
        kind.misses.to_string(),
    ];
    row.extend(refused.then(|| kind.not_stored.to_string()));
    row.push(by_kind(iter::once(kind)));
    for times in [&kind.response, &kind.service] {
        let shown = |ns: u64| if times.is_empty() { "–".to_owned() } else { time(ns) };
        row.extend(PERCENTILES.map(|percent| shown(percentile_ns(times, percent))));
        row.push(shown(times.max()));
    }
    row
}

fn notes(result: &RunResult, settings: &Settings<'_>, warmup_ops: u64) -> String {
    let metrics = &result.metrics;
    let mut text = String::new();
    if settings.open_loop {
        let lag = |percent| time(percentile_ns(&metrics.send_lag, percent));
        text += &format!(
            "open loop: response from the intended start; send lag p50 {}, p99 {}, p99.9 {}; of it the generator's \
             own p99 {}\n",
            lag(50.0),
            lag(99.0),
            lag(99.9),
            time(percentile_ns(&metrics.generator_lag, 99.0)),
        );
    } else {
        text += "closed loop: response times exclude waiting to send\n";
    }
    let counted = [
        (metrics.queued, "operations were due and waited for a free connection"),
        (metrics.unsent, "operations were due and never sent"),
        (metrics.blocked, "writes found the socket's buffer full"),
        (metrics.overflow, "times were above 100 s, the upper bound of the histograms"),
        (metrics.reconnects, "connections were lost and opened again"),
        (metrics.failed_connects, "attempts to open a connection failed"),
    ];
    for (count, what) in counted.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("{count} {what}\n");
    }
    if metrics.renewed > 0 {
        let per_s = metrics.renewed as f64 * 1e9 / result.elapsed_ns.max(1) as f64;
        text +=
            &format!("{} connections were renewed as requested, {per_s:.0}/s\n", metrics.renewed);
    }
    let (played, tape_ops) = (warmup_ops + attempts(metrics), settings.tape_ops);
    if played > tape_ops {
        text += &format!(
            "warm-up and window played {played} operations of a tape of {tape_ops}: later passes found the keys of earlier ones\n"
        );
    }
    let done = metrics.ok();
    if done > 0 {
        let cpu_ns = result.cpu_user_ns + result.cpu_system_ns;
        text += &format!(
            "generator: {:.2} µs of CPU per operation, {:.0} % of a CPU in each thread, by {} ({})\n",
            cpu_ns as f64 / 1e3 / done as f64,
            100.0 * cpu_ns as f64 / (result.elapsed_ns.max(1) * settings.threads) as f64,
            settings.io,
            settings.io_reason,
        );
    }
    text
}
