//! The verb `drive`: load a server from the command line, without Python.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cachemark_load::{Client, Configuration, Control, Limits, Session};
use cachemark_tape::Tape;
use serde::Serialize;

use crate::drive_table;
use crate::messages::{Done, Phase};
use crate::way::WayArguments;
use crate::workload::WorkloadArguments;
use crate::{fail, units, way};

/// Examples:
///
///   cachemark-engine drive --server 127.0.0.1:11211 --connections 50 --threads 2
///
///   cachemark-engine drive --server unix:/tmp/memcached.sock --rate 100k --connections 64 \
///       --mix get=9,set=1 --keys 1M --distribution zipf:0.99 --size 100..1000 --duration 30s
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// host:port or unix:/path; several with commas between
    #[arg(long)]
    server: String,
    #[command(flatten)]
    way: WayArguments,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Play this tape instead of making one
    #[arg(long)]
    tape: Option<PathBuf>,
    /// Threads of the generator
    #[arg(long, default_value = "1", value_parser = units::whole)]
    threads: u64,
    /// Connections in all, a multiple of the threads; as many as threads by default
    #[arg(long, value_parser = units::whole)]
    connections: Option<u64>,
    /// Operations outstanding on each connection
    #[arg(long, default_value = "1", value_parser = units::whole)]
    depth: u64,
    /// Played first and not counted
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    warmup: Duration,
    /// Length of the measured window
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    duration: Duration,
    /// An operation that takes longer is an error
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    timeout: Duration,
    /// Do not store the keys first
    #[arg(long)]
    no_prefill: bool,
    /// One JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// No line per second
    #[arg(long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    server: &'a str,
    threads: u64,
    connections: u64,
    depth: u64,
    open_loop: bool,
    seed: u64,
    duration_ms: u64,
    timeout_ms: u64,
    measure: Done,
}

/// Runs the verb: exit code 0, 1 when operations failed or none succeeded, 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    match drive(&arguments) {
        Ok(session) if session.tally.failed() == 0 && session.tally.ok() > 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => fail(error),
    }
}

fn drive(arguments: &Arguments) -> Result<Session, String> {
    let tape = Arc::new(tape(arguments)?);
    let connections = arguments.connections.unwrap_or(arguments.threads);
    let configuration = Configuration {
        addresses: way::addresses(&arguments.server).map_err(|text| format!("--server {text}"))?,
        hashing: arguments.way.hashing(),
        way: arguments.way.way()?,
        threads: arguments.threads as usize,
        connections: connections as usize,
        depth: arguments.depth as usize,
        segment: (0, 1),
        timeout: arguments.timeout,
    };
    let mut client = Client::prepare(configuration, Arc::clone(&tape))
        .map_err(|error| format!("--server {}: {error}", arguments.server))?;
    if !arguments.no_prefill {
        prefill(&mut client, arguments)?;
    }
    if !arguments.warmup.is_zero() {
        play(&mut client, arguments, "warm-up", arguments.warmup)?;
    }
    let session = play(&mut client, arguments, "measure", arguments.duration)?;
    if arguments.json {
        let document = Document {
            server: &arguments.server,
            threads: arguments.threads,
            connections,
            depth: arguments.depth,
            open_loop: tape.is_open_loop(),
            seed: tape.seed(),
            duration_ms: arguments.duration.as_millis() as u64,
            timeout_ms: arguments.timeout.as_millis() as u64,
            measure: Done::new(Phase::Measure, &session),
        };
        println!("{}", serde_json::to_string_pretty(&document).expect("plain values"));
    } else {
        print!("{}", drive_table::render(&session, tape.is_open_loop()));
    }
    Ok(session)
}

fn tape(arguments: &Arguments) -> Result<Tape, String> {
    if let Some(path) = &arguments.tape {
        return Tape::open(path).map_err(|error| format!("--tape {}: {error}", path.display()));
    }
    let bytes = arguments.workload.tape(Some(arguments.duration))?;
    Tape::from_bytes(bytes).map_err(|error| error.to_string())
}

fn prefill(client: &mut Client, arguments: &Arguments) -> Result<(), String> {
    let session = watched(client, Limits::Prefill, arguments, "prefill")?;
    let failed = session.tally.failed();
    if failed > 0 {
        return Err(format!(
            "{failed} keys could not be stored before the window; \
             check the server's item size limit, or use --no-prefill"
        ));
    }
    Ok(())
}

fn play(
    client: &mut Client,
    arguments: &Arguments,
    name: &str,
    duration: Duration,
) -> Result<Session, String> {
    let limits =
        Limits::Play { start_in_ns: 0, ops: None, duration_ns: Some(duration.as_nanos() as u64) };
    watched(client, limits, arguments, name)
}

/// Run a phase with a line per second on stderr.
fn watched(
    client: &mut Client,
    limits: Limits,
    arguments: &Arguments,
    name: &str,
) -> Result<Session, String> {
    let control = Control::default();
    let session = thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        let watched = control.clone();
        if !arguments.quiet {
            scope.spawn(move || {
                let mut before = 0;
                let mut second = 0;
                while end.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    second += 1;
                    let (ok, failed) = watched.progress();
                    live_line(name, second, ok - before, failed);
                    before = ok;
                }
            });
        }
        let session = client.run(limits, &control);
        drop(ended);
        session
    });
    session.map_err(|error| format!("the client failed: {error}"))
}

fn live_line(name: &str, second: u64, rate: u64, failed: u64) {
    let mut stderr = std::io::stderr().lock();
    let end = if stderr.is_terminal() { "   \r" } else { "\n" };
    // Nobody to tell is no reason to stop measuring.
    let _ = write!(stderr, "{name} {second} s: {rate} ops/s, {failed} errors{end}");
}
