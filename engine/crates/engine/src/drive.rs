//! The verb `drive`: load a server from the command line, without Python.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cachemark_load::Control;
use cachemark_tape::{Schedule, Verb, Workload};
use clap::Parser;
use serde::Serialize;

use crate::drive_errors::Errors;
use crate::drive_files::{Log, check_hgrm, write_hgrm};
use crate::drive_play::{connected, connections, in_memory, play, prefill, tape, warm_up};
use crate::drive_search::{Objective, Point};
use crate::drive_warnings::{Meant, warnings};
use crate::messages::{Done, Phase};
use crate::way::WayArguments;
use crate::workload::WorkloadArguments;
use crate::{drive_search, drive_table, fail, units};

const EXAMPLES: &str = "\
Examples:
  cachemark-engine drive --server 127.0.0.1:11211 --connections 50 --threads 2

  cachemark-engine drive --server unix:/tmp/memcached.sock --rate 100k --connections 64 \\
      --mix get=9,set=1 --keys 1M --zipf 0.99 --size 100..1000 --duration 30s

  cachemark-engine drive --server 127.0.0.1:11211 --preset etc --connections 64 --search 'p99<1ms'

  cachemark-engine drive --server 127.0.0.1:11211 --trace cluster52.zst --schedule replay:10

Exit status: 0; 1 when more failed than --max-errors allows, when nothing succeeded, or when no rate
met --search; 2 for bad input.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// host:port, udp:host:port or unix:/path; several with commas between
    #[arg(long)]
    pub server: String,
    #[command(flatten)]
    pub way: WayArguments,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    /// Play this tape instead of making one; it has the workload and the schedule in it
    #[arg(long, conflicts_with = "WorkloadArguments")]
    pub tape: Option<PathBuf>,
    /// Threads of the generator
    #[arg(long, default_value = "1", value_parser = units::whole)]
    pub threads: u64,
    /// Connections in all, a multiple of the threads; as many as threads by default
    #[arg(long, value_parser = units::whole)]
    pub connections: Option<u64>,
    /// Keep each thread on a CPU of its own of these: 0-3 or 0,2
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<String>,
    /// Operations outstanding on each connection
    #[arg(long, default_value = "1", value_parser = units::whole)]
    pub depth: u64,
    /// Played first and not counted
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    pub warmup: Duration,
    /// Length of the measured window
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    pub duration: Duration,
    /// An operation that takes longer is an error
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    pub timeout: Duration,
    /// Do not store the keys first
    #[arg(long, conflicts_with = "prefill")]
    no_prefill: bool,
    /// Find the highest rate at which a percentile of the response time stays below: 'p99<1ms'. Each
    /// rate is played for --duration, with Poisson arrivals unless --schedule says otherwise
    #[arg(long, value_name = "OBJECTIVE", conflicts_with_all = ["tape", "rate", "hgrm", "hlog"])]
    search: Option<Objective>,
    /// Exit with 1 above so many errors, or above such a part of the operations: 10 or 0.1%
    #[arg(long, default_value = "0")]
    max_errors: Errors,
    /// One JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Write the percentiles of the response time, a table as HdrHistogram prints it for each kind
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
    /// Write HdrHistogram's interval log: response times, second by second
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    /// No line per second
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    server: &'a str,
    threads: u64,
    connections: u64,
    depth: u64,
    io: &'static str,
    io_reason: &'static str,
    open_loop: bool,
    seed: u64,
    duration_ms: u64,
    timeout_ms: u64,
    warnings: Vec<String>,
    measure: Done,
}

#[derive(Serialize)]
struct Curve<'a> {
    server: &'a str,
    objective: &'a str,
    closed_loop_rate: f64,
    best_rate: Option<f64>,
    points: &'a [Point],
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    arguments: Arguments,
}

impl Arguments {
    /// Read the words behind the verb; the error is what a user is shown.
    pub fn read(words: &[&str]) -> Result<Arguments, String> {
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(words.arguments)
    }

    /// The part of the reads that is meant to hit, where that is known; a fetch makes its own hits.
    fn hit_ratio(&self) -> Result<Option<f64>, String> {
        if self.tape.is_some() || self.workload.is_recorded() {
            return Ok(None);
        }
        let workload = self.workload.workload()?;
        let fetches = workload.mix.iter().any(|entry| entry.verb == Verb::Fetch);
        Ok(workload.hit_ratio.filter(|_| !fetches))
    }

    /// What is to be played, if it is neither a file's nor a trace's.
    pub fn plan(&self) -> Result<(Workload, Schedule), String> {
        self.workload.plan(Some(self.duration))
    }
}

/// Runs the verb: exit code 0; 1 when more failed than may, when nothing succeeded, or when no rate
/// met the objective; 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = check(&arguments).and_then(|()| match arguments.search {
        Some(objective) => look_for(&arguments, objective),
        None => drive(&arguments),
    });
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(complaint)) => {
            eprintln!("cachemark-engine: {complaint}");
            ExitCode::FAILURE
        }
        Err(error) => fail(error),
    }
}

/// Refuse what would have no effect.
fn check(arguments: &Arguments) -> Result<(), String> {
    arguments.way.check(arguments.server.split(',').count())?;
    arguments.workload.check_run()?;
    arguments.search.map_or(Ok(()), |_| arguments.workload.check_search())
}

/// One window; why it did not go well, if so.
fn drive(arguments: &Arguments) -> Result<Option<String>, String> {
    let tape = Arc::new(tape(arguments)?);
    arguments.hgrm.as_deref().map_or(Ok(()), check_hgrm)?;
    if arguments.hlog.is_some() && !Control::can_tell_intervals(&tape) {
        return Err(
            "--hlog: an error may take back what has no reply, seconds later, so that there \
                    are no intervals of it; --hgrm has the whole window"
                .to_owned(),
        );
    }
    let mut client = connected(arguments, &tape)?;
    if !arguments.no_prefill {
        prefill(&mut client, arguments, &tape)?;
    }
    warm_up(&mut client, arguments, &tape)?;
    let mut log = arguments.hlog.as_deref().map(Log::begin).transpose()?;
    let window = ("measure", arguments.duration);
    let session = play(&mut client, arguments, &tape, window, log.as_mut())?;
    log.map_or(Ok(()), Log::end)?;
    if let Some(path) = &arguments.hgrm {
        write_hgrm(path, &session.tally)?;
    }
    let meant = Meant {
        open_loop: tape.is_open_loop(),
        threads: arguments.threads,
        hit_ratio: arguments.hit_ratio()?,
        length_ns: (!tape.is_open_loop() && !tape.has_thinks())
            .then_some(arguments.duration.as_nanos() as u64),
    };
    let warnings = warnings(&session, &meant);
    if arguments.json {
        print_json(&Document {
            server: &arguments.server,
            threads: arguments.threads,
            connections: connections(arguments),
            depth: arguments.depth,
            io: client.io().name(),
            io_reason: arguments.way.io_reason(),
            open_loop: tape.is_open_loop(),
            seed: tape.seed(),
            duration_ms: arguments.duration.as_millis() as u64,
            timeout_ms: arguments.timeout.as_millis() as u64,
            warnings,
            measure: Done::new(Phase::Measure, &session),
        });
    } else {
        let io = format!("{} ({})", client.io().name(), arguments.way.io_reason());
        print!("{}", drive_table::render(&session, tape.is_open_loop(), &io));
        warnings.iter().for_each(|warning| println!("warning: {warning}"));
    }
    Ok(arguments.max_errors.complaint(&session.tally))
}

/// The highest rate that meets the objective; a complaint if there is none.
fn look_for(arguments: &Arguments, objective: Objective) -> Result<Option<String>, String> {
    let closed = arguments.workload.closed();
    let tape = Arc::new(in_memory(closed.tape(None)?)?);
    let mut client = connected(arguments, &tape)?;
    if !arguments.no_prefill {
        prefill(&mut client, arguments, &tape)?;
    }
    warm_up(&mut client, arguments, &tape)?;
    // No open loop over these connections does more than a closed one.
    let most = play(&mut client, arguments, &tape, ("closed loop", arguments.duration), None)?;
    let most = most.tally.ok() as f64 * 1e9 / most.elapsed_ns.max(1) as f64;
    if most < 1.0 {
        return Err(format!("--server {}: nothing was answered", arguments.server));
    }
    drop(client);
    let points = drive_search::search(most, |rate| {
        let bytes = arguments.workload.at_rate(rate).tape(Some(arguments.duration))?;
        let tape = Arc::new(in_memory(bytes)?);
        let mut client = connected(arguments, &tape)?;
        let name = format!("{rate:.0}/s");
        warm_up(&mut client, arguments, &tape)?;
        let window = (name.as_str(), arguments.duration);
        let session = play(&mut client, arguments, &tape, window, None)?;
        let allow = |failed, of| arguments.max_errors.allow(failed, of);
        Ok(drive_search::point(rate, &session, objective, allow))
    })?;
    let best = drive_search::best(&points);
    let text = format!("p{}<{:?}", objective.percent, objective.below);
    if arguments.json {
        print_json(&Curve {
            server: &arguments.server,
            objective: &text,
            closed_loop_rate: most,
            best_rate: best.map(|point| point.wanted),
            points: &points,
        });
    } else {
        println!("closed loop: {most:.0} operations a second");
        print!("{}", drive_table::curve(&points, &text));
    }
    let nothing = || format!("no rate met {text}; see the curve for what each missed it by");
    Ok(best.is_none().then(nothing))
}

fn print_json(document: &impl Serialize) {
    println!("{}", serde_json::to_string_pretty(document).expect("plain values"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_command_lines() {
        let text = EXAMPLES.replace("\\\n", " ");
        let examples =
            text.lines().filter_map(|line| line.trim().strip_prefix("cachemark-engine drive "));
        let read = |example: &str| {
            let words: Vec<&str> =
                example.split_whitespace().map(|word| word.trim_matches('\'')).collect();
            Arguments::read(&words).map(|_| example.to_owned())
        };
        let read = examples.map(read).collect::<Result<Vec<_>, _>>();
        assert_eq!(read.expect("each can be typed").len(), 4);
    }
}
