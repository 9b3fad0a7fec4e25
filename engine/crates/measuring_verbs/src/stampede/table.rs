//! The table that `stampede` prints.

use cachemark_command::times::time;
use comfy_table::{CellAlignment, Table, presets};

use crate::stampede::episodes::Times;
use crate::stampede::played::{Approach, Played};

const HEADER: [&str; 11] = [
    "approach",
    "expiries",
    "refills per expiry",
    "most",
    "served stale",
    "waited",
    "others p50",
    "p99",
    "max",
    "between p50",
    "p99",
];

/// The results as text, which ends with a newline.
pub fn render(played: &[Played], callers: u64) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(HEADER);
    for one in played {
        table.add_row(row(one));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.trim_fmt();
    format!(
        "{text}\n{callers} callers of one key. others: calls that did not refill, while one did; between: calls while \
         no caller did.\nserved stale: calls that got the old value meanwhile; waited: calls that had to wait for the \
         new one.\n"
    )
}

fn row(played: &Played) -> Vec<String> {
    let summary = &played.summary;
    let expiries = &summary.expiries;
    let refills: u64 = expiries.iter().map(|one| one.refills).sum();
    let mut row = vec![
        name(played.approach).to_owned(),
        expiries.len().to_string(),
        format!("{:.1}", refills as f64 / expiries.len().max(1) as f64),
        expiries.iter().map(|one| one.refills).max().unwrap_or_default().to_string(),
        expiries.iter().map(|one| one.stale).sum::<u64>().to_string(),
        expiries.iter().map(|one| one.waited).sum::<u64>().to_string(),
    ];
    row.extend(times(&summary.others));
    row.extend(times(&summary.between).into_iter().take(2));
    row
}

fn times(of: &Times) -> [String; 3] {
    [of.median_ns, of.p99_ns, of.most_ns]
        .map(|ns| if of.calls == 0 { "–".to_owned() } else { time(ns) })
}

fn name(approach: Approach) -> &'static str {
    match approach {
        Approach::Plain => "plain",
        Approach::Win => "win (N)",
        Approach::Stale => "win, stale (N, R)",
    }
}
