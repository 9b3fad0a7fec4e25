//! The tape, the client and the phases of `drive`.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cachemark_command::cpus;
use cachemark_load::{
    Client, ClientOptions, ConnectionOptions, PhaseLimits, PrepareError, Refill, RunControl,
    RunResult,
};
use cachemark_tape::Tape;

use crate::drive::arguments::Arguments;
use crate::drive::files::Log;
use crate::drive::live::{Lines, Live};
use crate::drive::totals::attempts;
use crate::drive::{errors, live};
use crate::options::{connection_options, tape_file};

/// A tape of them has 256 MiB, and takes a second or two to make.
const MOST_OPS: u64 = 16_000_000;

pub fn connected(arguments: &Arguments, tape: &Arc<Tape>) -> Result<Client, String> {
    let options = ClientOptions {
        addresses: connection_options::addresses(&arguments.server)
            .map_err(|text| format!("--server {text}"))?,
        hashing: arguments.connection.hashing(),
        connection_options: ConnectionOptions {
            cpus: cpus(arguments)?,
            ..arguments.connection.options()?
        },
        threads: arguments.threads as usize,
        connections: arguments.connections() as usize,
        depth: arguments.depth as usize,
        refill: Refill::Each,
        segment: (0, 1),
        timeout: arguments.timeout,
    };
    Client::prepare(options, Arc::clone(tape)).map_err(|error| match error {
        PrepareError::Connect(..) => format!("--server {error}"),
        PrepareError::Usage(text) | PrepareError::Unsupported(text) => text,
    })
}

pub fn tape(arguments: &Arguments) -> Result<Tape, String> {
    if let Some(path) = &arguments.tape {
        return tape_file::open(path);
    }
    let workload = arguments.workload.clone().for_window(arguments.window_ops(), MOST_OPS);
    tape_file::in_memory(workload.tape(Some(arguments.duration()))?)
}

pub fn prefill(client: &mut Client, arguments: &Arguments, tape: &Tape) -> Result<(), String> {
    let live =
        Live { name: "prefill", is_prefill: true, tape, played_ops: 0, lines: arguments.lines() };
    let result = run_phase(client, PhaseLimits::Prefill, arguments, &live, None)?;
    errors::prefill_problem(&result.metrics, tape.prefill_count().into()).map_or(Ok(()), Err)
}

/// Play the warm-up. Returns how many operations it played.
pub fn warm_up(client: &mut Client, arguments: &Arguments, tape: &Tape) -> Result<u64, String> {
    if arguments.warmup().is_zero() {
        return Ok(0);
    }
    let phase = ("warm-up", Some(arguments.warmup()), 0);
    Ok(attempts(&play(client, arguments, tape, phase, None)?.metrics))
}

/// Play for a time; without one, every operation of the tape once. The last part of the phase: how many operations
/// were played before it.
pub fn play(
    client: &mut Client,
    arguments: &Arguments,
    tape: &Tape,
    (name, duration, played_ops): (&str, Option<Duration>, u64),
    log: Option<&mut Log>,
) -> Result<RunResult, String> {
    let limits = PhaseLimits::Play {
        start_in_ns: 0,
        ops: duration.is_none().then_some(tape.op_count()),
        duration_ns: duration.map(|duration| duration.as_nanos() as u64),
    };
    let live = Live { name, is_prefill: false, tape, played_ops, lines: arguments.lines() };
    run_phase(client, limits, arguments, &live, log)
}

/// Run a phase, with a line for each second on stderr.
fn run_phase(
    client: &mut Client,
    limits: PhaseLimits,
    arguments: &Arguments,
    live: &Live<'_>,
    log: Option<&mut Log>,
) -> Result<RunResult, String> {
    let threads = arguments.threads as usize;
    // Intervals are not needed if they are neither printed nor logged.
    let control = match live.lines == Lines::Nothing && log.is_none() {
        true => RunControl::default(),
        false => RunControl::with_intervals(live.tape, threads, Duration::from_secs(1)),
    };
    thread::scope(|scope| {
        let (ending, ended) = channel::<()>();
        let handle = control.clone();
        let watching = scope.spawn(move || live::watch(live, &handle, &ended, log));
        let result = client.run(limits, &control);
        drop(ending);
        watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        result.map_err(|error| format!("the client failed: {error}"))
    })
}

/// The CPU of each thread, if threads are pinned.
fn cpus(arguments: &Arguments) -> Result<Vec<usize>, String> {
    let Some(text) = &arguments.pin else { return Ok(Vec::new()) };
    let asked = cpus::parse(text).map_err(|text| format!("--pin {text}"))?;
    let usable = cpus::usable().map_err(|error| format!("--pin: {error}"))?;
    if let Some(other) = asked.iter().find(|cpu| !usable.contains(cpu)) {
        return Err(format!(
            "--pin {text}: this process may not use CPU {other}; it may {usable:?}"
        ));
    }
    let (threads, count) = (arguments.threads, asked.len());
    if count as u64 != threads {
        return Err(format!(
            "--pin {text}: {count} CPUs for {threads} --threads; each needs its own"
        ));
    }
    Ok(asked)
}
