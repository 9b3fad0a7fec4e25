//! `drive` without `--search`: one measured window.

use std::sync::Arc;
use std::time::Duration;

use cachemark_load::{RunControl, RunResult};
use cachemark_tape::Tape;
use serde::Serialize;

use crate::drive::arguments::Arguments;
use crate::drive::files::{Log, check_hgrm, write_hgrm};
use crate::drive::json_lines::{Line, Results, Settings};
use crate::drive::play::{connected, play, prefill, tape, warm_up};
use crate::drive::table;
use crate::drive::totals::hits;
use crate::drive::verdict;
use crate::drive::warnings::{Expected, warnings};
use crate::process::{print_json_document, print_text};
use crate::worker::messages::{Done, Phase};

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    settings: Settings<'a>,
    warnings: Vec<String>,
    /// Why hits and misses are not those of the workload: the counts are what was seen.
    hits_withheld: Option<String>,
    measure: Done,
}

/// What is said about a window besides its figures.
struct Told<'a> {
    hits_withheld: Option<String>,
    warnings: Vec<String>,
    problem: Option<&'a str>,
}

/// Play one window and print its results. Returns what was wrong with it, if anything.
pub fn measure(arguments: &Arguments) -> Result<Option<String>, String> {
    let tape = Arc::new(tape(arguments)?);
    arguments.hgrm.as_deref().map_or(Ok(()), check_hgrm)?;
    if arguments.hlog.is_some() && !RunControl::supports_intervals(&tape) {
        return Err(
            "--hlog: operations without a reply may turn out to have failed seconds later, so that \
             there are no exact intervals; --hgrm has the whole window"
                .to_owned(),
        );
    }
    let mut client = connected(arguments, &tape)?;
    let duration = (!arguments.plays_once()).then(|| arguments.duration());
    let settings = settings(arguments, &tape, client.io().name(), duration);
    if arguments.json_lines {
        Line::Begin(&settings).print();
    }
    if !arguments.no_prefill {
        prefill(&mut client, arguments, &tape)?;
    }
    let repeats = warm_up(&mut client, arguments, &tape)?;
    let mut log = arguments.hlog.as_deref().map(Log::begin).transpose()?;
    let window = ("measure", duration);
    let result = play(&mut client, arguments, &tape, window, repeats, log.as_mut())?;
    log.map_or(Ok(()), Log::end)?;
    if let Some(path) = &arguments.hgrm {
        write_hgrm(path, &result.metrics)?;
    }
    let expected = Expected {
        open_loop: tape.is_open_loop(),
        threads: arguments.threads,
        hit_ratio: arguments.hit_ratio()?,
        length_ns: duration.filter(|_| !tape.is_timed()).map(|duration| duration.as_nanos() as u64),
    };
    let invalid = if tape.is_open_loop() { verdict::invalid(&result) } else { None };
    let problem = arguments.max_errors.problem(&result.metrics).or(invalid);
    let played = result.metrics.kinds().map(|(_, kind)| kind.attempts).sum();
    let told = Told {
        hits_withheld: repeats.withheld(played, hits(&result.metrics).1),
        warnings: warnings(&result, &expected),
        problem: problem.as_deref(),
    };
    print_results(arguments, settings, &result, told);
    Ok(problem)
}

fn print_results(
    arguments: &Arguments,
    settings: Settings<'_>,
    result: &RunResult,
    told: Told<'_>,
) {
    let Told { hits_withheld, warnings, problem } = told;
    let warnings: Vec<String> = warnings.into_iter().chain(hits_withheld.clone()).collect();
    let measure = || Done::new(Phase::Measure, result);
    if arguments.json_lines {
        Line::Result(&Results::new(
            result,
            measure(),
            problem,
            &warnings,
            hits_withheld.as_deref(),
        ))
        .print();
    } else if arguments.json {
        print_json_document(&Document { settings, warnings, hits_withheld, measure: measure() });
    } else {
        let io = format!("{} ({})", settings.io, settings.io_reason);
        let shown = hits_withheld.is_none();
        print_text(table::render(result, settings.open_loop, shown, &io));
        warnings.iter().for_each(|warning| print_text(format_args!("warning: {warning}\n")));
    }
}

fn settings<'a>(
    arguments: &'a Arguments,
    tape: &Tape,
    io: &'static str,
    duration: Option<Duration>,
) -> Settings<'a> {
    Settings {
        server: &arguments.server,
        threads: arguments.threads,
        connections: arguments.connections(),
        depth: arguments.depth,
        io,
        io_reason: arguments.connection.io_reason(),
        open_loop: tape.is_open_loop(),
        seed: tape.seed(),
        duration_ms: duration.map(|duration| duration.as_millis() as u64),
        timeout_ms: arguments.timeout.as_millis() as u64,
    }
}
