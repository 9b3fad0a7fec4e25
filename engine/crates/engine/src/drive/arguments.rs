//! The options of `drive`.

use std::path::PathBuf;
use std::time::Duration;

use cachemark_command::units;
use cachemark_tape::{Schedule, Workload};
use clap::Parser;

use crate::drive::errors::ErrorLimit;
use crate::drive::live::Lines;
use crate::options::connection_options::ConnectionArguments;
use crate::options::extent::check_extent;
use crate::options::tape_length::begins_cold;
use crate::options::workload::WorkloadArguments;

const WARMUP: Duration = Duration::from_secs(1);
const DURATION: Duration = Duration::from_secs(10);
/// The most operations of a thread, with small values.
const MOST_OPS_PER_S: f64 = 250_000.0;

const EXAMPLES: &str = "\
Examples:
  cachemark-engine drive --server 127.0.0.1:11211 --connections 50 --threads 2

  cachemark-engine drive --server unix:/tmp/memcached.sock --rate 100k --connections 64 \\
      --mix get=9,set=1 --keys 1M --zipf 0.99 --size 100..1000 --duration 30s

  cachemark-engine drive --server 127.0.0.1:11211 --trace cluster52.zst --schedule replay:10

  cachemark-engine drive --server 127.0.0.1:11211 --duration 10m --json-lines | cachemark web --drive

Exit status: 0; 1 if more operations failed than --max-errors allows, or if none succeeded; 2 for bad input.
`cachemark drive` also judges the window, and searches for the highest rate that meets an objective.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// host:port, udp:host:port or unix:/path; several are separated by commas
    #[arg(long)]
    pub server: String,
    #[command(flatten)]
    pub connection: ConnectionArguments,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    /// Play this tape instead of making one; a tape contains workload and schedule
    #[arg(long, conflicts_with = "WorkloadArguments")]
    pub tape: Option<PathBuf>,
    /// Threads of the load generator
    #[arg(long, default_value = "1", value_parser = units::whole)]
    pub threads: u64,
    /// Total number of connections, a multiple of the threads [default: one for each thread]
    #[arg(long, value_parser = units::whole)]
    pub connections: Option<u64>,
    /// Pin each thread to its own one of these CPUs: 0-3 or 0,2
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<String>,
    /// Operations in flight on each connection
    #[arg(long, default_value = "1", value_parser = units::whole)]
    pub depth: u64,
    /// Length of the warm-up, which is not measured [default: 1s; none for a trace, or if no key is stored first, as it
    /// would fill the cache]
    #[arg(long, value_parser = units::duration)]
    warmup: Option<Duration>,
    /// Length of the measured window [default: 10s; a trace is played once]
    #[arg(long, value_parser = units::duration)]
    duration: Option<Duration>,
    /// An operation that takes longer counts as an error
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    pub timeout: Duration,
    /// Do not store the keys before the window
    #[arg(long, conflicts_with = "prefill")]
    pub no_prefill: bool,
    /// Exit with 1 if more operations fail: a number (10) or a share of all operations (0.1%)
    #[arg(long, default_value = "0")]
    pub max_errors: ErrorLimit,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print lines of JSON: the settings, each second, and the results. `cachemark web --drive` shows them
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub json_lines: bool,
    /// Write percentiles of the response time to this file, in HdrHistogram's form, for each kind of operation
    #[arg(long, value_name = "FILE")]
    pub hgrm: Option<PathBuf>,
    /// Write HdrHistogram's interval log to this file: response times of each second
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Print no line for each second
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    arguments: Arguments,
}

impl Arguments {
    /// Parse the words behind the verb. The error is what the user sees.
    pub fn parse_words(words: &[&str]) -> Result<Arguments, String> {
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(words.arguments)
    }

    /// The length of the warm-up.
    pub fn warmup(&self) -> Duration {
        let cold = self.workload.is_recorded()
            || self.tape.is_none()
                && self.workload.workload().is_ok_and(|work| self.is_cold(&work));
        self.warmup.unwrap_or(if cold { Duration::ZERO } else { WARMUP })
    }

    fn is_cold(&self, workload: &Workload) -> bool {
        let prefill = if self.no_prefill { 0.0 } else { workload.prefill };
        begins_cold(&Workload { prefill, ..workload.clone() })
    }

    /// How many operations the window may play.
    pub fn window_ops(&self) -> u64 {
        (self.duration().as_secs_f64() * MOST_OPS_PER_S * self.threads as f64) as u64
    }

    /// The length of the measured window, if it does not end after one pass of a trace.
    pub fn duration(&self) -> Duration {
        self.duration.unwrap_or(DURATION)
    }

    /// Whether the window ends after one pass of a trace.
    pub fn plays_once(&self) -> bool {
        self.workload.is_recorded() && self.duration.is_none()
    }

    /// The workload and the schedule, if they come from no file and no trace.
    pub fn plan(&self) -> Result<(Workload, Schedule), String> {
        self.workload.plan(Some(self.duration()))
    }
    /// Refuse options that would have no effect.
    pub fn check(&self) -> Result<(), String> {
        self.connection.check(self.server.split(',').count())?;
        self.workload.check_run()?;
        check_extent(self.threads, self.connections(), self.depth)
    }

    /// The lines for each second.
    pub fn lines(&self) -> Lines {
        match (self.json_lines, self.quiet) {
            (true, _) => Lines::Json,
            (false, true) => Lines::Nothing,
            (false, false) => Lines::Text,
        }
    }

    pub fn connections(&self) -> u64 {
        self.connections.unwrap_or(self.threads)
    }
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
            let command = example.split(" | ").next().unwrap_or(example);
            let words: Vec<&str> =
                command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
            Arguments::parse_words(&words).map(|_| example.to_owned())
        };
        let read = examples.map(read).collect::<Result<Vec<_>, _>>();
        assert_eq!(read.expect("valid command lines").len(), 4);
    }
}
