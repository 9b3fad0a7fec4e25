//! The options of `drive`.

use std::path::PathBuf;
use std::time::Duration;

use cachemark_tape::{Schedule, Verb, Workload};
use clap::Parser;

use crate::drive::errors::Errors;
use crate::drive::search::Objective;
use crate::options::connection_options::ConnectionArguments;
use crate::options::units;
use crate::options::workload::WorkloadArguments;

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
    pub connection: ConnectionArguments,
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
    pub no_prefill: bool,
    /// Find the highest rate at which a percentile of the response time stays below: 'p99<1ms'. Each
    /// rate is played for --duration, with Poisson arrivals unless --schedule says otherwise
    #[arg(long, value_name = "OBJECTIVE", conflicts_with_all = ["tape", "rate", "hgrm", "hlog"])]
    pub search: Option<Objective>,
    /// Exit with 1 above so many errors, or above such a part of the operations: 10 or 0.1%
    #[arg(long, default_value = "0")]
    pub max_errors: Errors,
    /// One JSON document instead of the table
    #[arg(long)]
    pub json: bool,
    /// Write the percentiles of the response time, a table as HdrHistogram prints it for each kind
    #[arg(long, value_name = "FILE")]
    pub hgrm: Option<PathBuf>,
    /// Write HdrHistogram's interval log: response times, second by second
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// No line per second
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
    /// Read the words behind the verb; the error is what a user is shown.
    pub fn read(words: &[&str]) -> Result<Arguments, String> {
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(words.arguments)
    }

    /// The part of the reads that is meant to hit, where that is known; a fetch makes its own hits.
    pub fn hit_ratio(&self) -> Result<Option<f64>, String> {
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
    /// Refuse what would have no effect.
    pub fn check(&self) -> Result<(), String> {
        self.connection.check(self.server.split(',').count())?;
        self.workload.check_run()?;
        self.search.map_or(Ok(()), |_| self.workload.check_search())
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
            let words: Vec<&str> =
                example.split_whitespace().map(|word| word.trim_matches('\'')).collect();
            Arguments::read(&words).map(|_| example.to_owned())
        };
        let read = examples.map(read).collect::<Result<Vec<_>, _>>();
        assert_eq!(read.expect("each can be typed").len(), 4);
    }
}
