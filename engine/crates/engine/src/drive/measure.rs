//! One measured window, with the phases before it.

use std::sync::Arc;
use std::time::Duration;

use cachemark_command::process::{print_json_document, print_text};
use cachemark_load::{RunControl, RunResult};
use cachemark_tape::Tape;
use serde::Serialize;

use crate::drive::arguments::Arguments;
use crate::drive::files::{Log, check_hgrm, write_hgrm};
use crate::drive::json_lines::{Line, Settings};
use crate::drive::play::{connected, play, prefill, tape, warm_up};
use crate::drive::table;
use crate::drive::totals::attempts;
use crate::worker::messages::{Done, Phase};

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    settings: Settings<'a>,
    warmup_ops: u64,
    tape_repeated: bool,
    measure: Done,
}

/// A window that was played, and what was before it.
struct Played<'a> {
    settings: Settings<'a>,
    warmup_ops: u64,
    result: RunResult,
    /// Why the exit status is 1.
    problem: Option<String>,
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
    let warmup_ops = warm_up(&mut client, arguments, &tape)?;
    let mut log = arguments.hlog.as_deref().map(Log::begin).transpose()?;
    let result =
        play(&mut client, arguments, &tape, ("measure", duration, warmup_ops), log.as_mut())?;
    log.map_or(Ok(()), Log::end)?;
    if let Some(path) = &arguments.hgrm {
        write_hgrm(path, &result.metrics)?;
    }
    let problem = arguments.max_errors.problem(&result.metrics);
    let played = Played { settings, warmup_ops, result, problem };
    print_results(arguments, &played);
    Ok(played.problem)
}

fn print_results(arguments: &Arguments, played: &Played<'_>) {
    let Played { settings, warmup_ops, result, problem } = played;
    let (settings, warmup_ops, measure) =
        (*settings, *warmup_ops, || Done::new(Phase::Measure, result));
    let tape_repeated = warmup_ops + attempts(&result.metrics) > settings.tape_ops;
    if arguments.json_lines {
        let (problem, measure) = (problem.as_deref(), Box::new(measure()));
        Line::Result { problem, warmup_ops, tape_repeated, measure }.print();
    } else if arguments.json {
        print_json_document(&Document { settings, warmup_ops, tape_repeated, measure: measure() });
    } else {
        print_text(table::render(result, &settings, warmup_ops));
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
        tape_ops: tape.op_count(),
        duration_ms: duration.map(|duration| duration.as_millis() as u64),
        timeout_ms: arguments.timeout.as_millis() as u64,
    }
}
