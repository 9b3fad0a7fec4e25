//! The table that `drive` prints.

use cachemark_load::{Failure, KindTally, Session, percentile_ns};
use comfy_table::{CellAlignment, Table, presets};

/// The percentiles shown, and the least sample whose two-sided 95 % interval is finite:
/// n ≥ ln(0.025) / ln(p).
const PERCENTILES: [(f64, &str, u64); 4] =
    [(50.0, "p50", 6), (90.0, "p90", 36), (99.0, "p99", 368), (99.9, "p99.9", 3688)];

/// The session as text, ending with a line end.
pub fn render(session: &Session, open_loop: bool) -> String {
    let seconds = session.elapsed_ns as f64 / 1e9;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut header = vec!["operation", "ok", "ops/s", "hits", "misses", "errors"];
    header.extend(PERCENTILES.map(|(_, name, _)| name));
    header.extend(["max", "service p50", "p99"]);
    table.set_header(&header);
    for (name, kind) in session.tally.kinds() {
        table.add_row(row(name, kind, seconds));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text.push_str(&notes(session, open_loop));
    text
}

fn row(name: &str, kind: &KindTally, seconds: f64) -> Vec<String> {
    let mut row = vec![
        name.to_owned(),
        kind.ok.to_string(),
        format!("{:.0}", kind.ok as f64 / seconds),
        kind.hits.to_string(),
        kind.misses.to_string(),
        errors(kind),
    ];
    let at = |histogram: &hdrhistogram::Histogram<u64>, (percent, _, least): (f64, &str, u64)| {
        if histogram.len() < least {
            "–".to_owned()
        } else {
            time(percentile_ns(histogram, percent))
        }
    };
    row.extend(PERCENTILES.map(|percentile| at(&kind.response, percentile)));
    row.push(if kind.response.is_empty() { "–".to_owned() } else { time(kind.response.max()) });
    row.extend([PERCENTILES[0], PERCENTILES[2]].map(|percentile| at(&kind.service, percentile)));
    row
}

fn errors(kind: &KindTally) -> String {
    let mut parts: Vec<String> = Failure::ALL
        .into_iter()
        .zip(kind.errors)
        .filter(|(_, count)| *count > 0)
        .map(|(failure, count)| format!("{count} {}", failure.name()))
        .collect();
    if kind.wrong_values > 0 {
        parts.push(format!("{} wrong value", kind.wrong_values));
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join(", ") }
}

fn notes(session: &Session, open_loop: bool) -> String {
    let tally = &session.tally;
    let mut text = String::new();
    if open_loop {
        let lag = |percent| time(percentile_ns(&tally.lag, percent));
        text += &format!(
            "open loop: response from the intended start; send lag p50 {}, p99 {}, p99.9 {}\n",
            lag(50.0),
            lag(99.0),
            lag(99.9)
        );
    } else {
        text += "closed loop: response times exclude waiting to send\n";
    }
    if tally.bound > 0 {
        let bound = tally.bound;
        text += &format!("{bound} operations were due and waited for a connection with room\n");
    }
    if tally.beyond > 0 {
        text += &format!("{} times were above 100 s, the highest that is told\n", tally.beyond);
    }
    if tally.unsent > 0 {
        text += &format!("{} operations were due and never sent\n", tally.unsent);
    }
    if tally.reconnects > 0 {
        text += &format!("{} reconnects\n", tally.reconnects);
    }
    let done = tally.ok();
    if done > 0 {
        let cpu_us = (session.cpu_user_ns + session.cpu_system_ns) as f64 / 1e3 / done as f64;
        text += &format!("generator: {cpu_us:.2} µs of CPU per operation\n");
    }
    text
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}
