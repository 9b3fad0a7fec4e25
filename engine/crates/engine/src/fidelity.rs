//! The verb `fidelity`: is the native client right? Plays every case in virtual time.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use cachemark_fidelity::{CASES, Case, Check, Findings, Unit, Verdict};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::fail;
use crate::messages::{Done, Phase};

/// Examples:
///
///   cachemark-engine fidelity
///
///   cachemark-engine fidelity F5 F16
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Only these cases, F5 stands for F5b, F5c … too
    cases: Vec<String>,
    /// One JSON document a case: its checks, and the trial as a worker tells it
    #[arg(long)]
    json: bool,
    /// Print what was checked beside the analytic answers too: counts, and times one by one
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    case: &'a str,
    title: &'a str,
    holds: bool,
    checks: Vec<Row<'a>>,
    verdict: &'a str,
    open_loop: bool,
    window_ns: u64,
    /// What the scripted server was asked for, as `stats` would tell it.
    server_gets: u64,
    measure: Option<Done>,
}

#[derive(Serialize)]
struct Row<'a> {
    quantity: &'a str,
    unit: &'a str,
    expected: f64,
    measured: f64,
    tolerance: f64,
}

/// Runs the verb: exit code 0, 1 when a case does not give its answer, 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let asked = |case: &&Case| {
        let named = |name: &String| {
            let rest = case.id.to_lowercase();
            let rest = rest.strip_prefix(&name.to_lowercase());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        arguments.cases.is_empty() || arguments.cases.iter().any(named)
    };
    let cases: Vec<&Case> = CASES.iter().filter(asked).collect();
    if cases.is_empty() {
        return fail(format!("no case {:?}: they go from F1 to F29", arguments.cases));
    }
    if cachemark_planted::POSSIBLE {
        return fail("bugs can be planted in this build: it is for tests only".to_owned());
    }
    let mut right = 0;
    let mut table = heading();
    for case in &cases {
        progress(case);
        let findings = (case.play)();
        right += usize::from(findings.checks.iter().all(Check::holds));
        if arguments.json {
            let document = document(case, &findings);
            println!("{}", serde_json::to_string(&document).expect("plain values"));
        } else {
            add_rows(&mut table, case, &findings, arguments.all);
        }
    }
    if !arguments.json {
        println!("{}\n\n{right} of {} cases give their answer", table.trim_fmt(), cases.len());
    }
    if right == cases.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn progress(case: &Case) {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        // Nobody to tell is no reason to stop.
        let _ = write!(stderr, "\r\x1b[K{} {}\r", case.id, case.title);
        let _ = stderr.flush();
    }
}

fn heading() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["case", "quantity", "answer", "measured", "tolerance", ""]);
    for (index, column) in table.column_iter_mut().enumerate() {
        if (2..5).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn add_rows(table: &mut Table, case: &Case, findings: &Findings, all: bool) {
    table.add_row([case.id, case.title]);
    let mut agreed = 0;
    for check in &findings.checks {
        // Rows that say the same of every case are told as one, unless one is wrong.
        if check.expected == check.measured && check.unit == Unit::Count && !all {
            agreed += 1;
            continue;
        }
        let mark = if check.holds() { "ok" } else { "WRONG" };
        let [answer, measured, tolerance] = [check.expected, check.measured, check.tolerance]
            .map(|value| figure(value, check.unit));
        table.add_row(["", &check.quantity, &answer, &measured, &tolerance, mark]);
    }
    if agreed > 0 {
        table.add_row(["", &format!("{agreed} counts"), "", "equal", "0", "ok"]);
    }
}

fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns if value < 1e3 => format!("{value:.0} ns"),
        Unit::Ns if value < 1e6 => format!("{:.3} µs", value / 1e3),
        Unit::Ns if value < 1e9 => format!("{:.3} ms", value / 1e6),
        Unit::Ns => format!("{:.4} s", value / 1e9),
        Unit::Count => format!("{value:.0}"),
        Unit::PerSecond => format!("{value:.1} /s"),
        Unit::Ratio => format!("{value:.5}"),
    }
}

fn document<'a>(case: &'a Case, findings: &'a Findings) -> Document<'a> {
    let row = |check: &'a Check| Row {
        quantity: &check.quantity,
        unit: match check.unit {
            Unit::Ns => "ns",
            Unit::Count => "count",
            Unit::PerSecond => "1/s",
            Unit::Ratio => "",
        },
        expected: check.expected,
        measured: check.measured,
        tolerance: check.tolerance,
    };
    let played = findings.played.as_ref();
    Document {
        case: case.id,
        title: case.title,
        holds: findings.checks.iter().all(Check::holds),
        checks: findings.checks.iter().map(row).collect(),
        verdict: match findings.verdict {
            Verdict::Valid => "VALID",
            Verdict::Overload => "OVERLOAD",
            Verdict::Invalid => "INVALID",
            Verdict::NonStationary => "NON_STATIONARY",
        },
        open_loop: played.is_some_and(|played| played.open_loop),
        window_ns: played.map_or(0, |played| played.window_ns),
        server_gets: played.map_or(0, |played| played.truth.requests()),
        measure: played.map(|played| Done::new(Phase::Measure, &played.session)),
    }
}
