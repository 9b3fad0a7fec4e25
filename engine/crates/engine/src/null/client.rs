//! The verb `null-client`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use cachemark_command::process::{fail, print_compact_json};
use cachemark_command::units;
use cachemark_load::Address;
use cachemark_null::{FloorResult, RequestPlan, play};
use serde::Serialize;

use crate::options::tape_file;
use crate::options::workload::WorkloadArguments;

#[derive(clap::Args)]
pub struct Arguments {
    /// host:port or unix:/path
    #[arg(long)]
    server: String,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Play this tape instead of making one
    #[arg(long)]
    tape: Option<PathBuf>,
    /// Connections, all served by one thread
    #[arg(long, default_value = "1", value_parser = units::whole)]
    connections: u64,
    /// Requests outstanding on each connection
    #[arg(long, default_value = "1", value_parser = units::whole)]
    depth: u64,
    /// Length of each reply, if it is not the tape's value
    #[arg(long, value_parser = units::whole)]
    reply_bytes: Option<u64>,
    /// Length of the warm-up, which is not measured
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    warmup: Duration,
    /// Length of the measured window
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    duration: Duration,
}

#[derive(Serialize)]
struct Document {
    ops: u64,
    elapsed_ns: u64,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
}

/// Run the verb: print its numbers as one JSON document.
pub fn run(arguments: Arguments) -> ExitCode {
    match floor(&arguments) {
        Ok(FloorResult { ops, elapsed_ns, cpu_user_ns, cpu_system_ns }) => {
            let document = Document { ops, elapsed_ns, cpu_user_ns, cpu_system_ns };
            print_compact_json(&document);
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn floor(arguments: &Arguments) -> Result<FloorResult, String> {
    let address = Address::parse(&arguments.server).map_err(|text| format!("--server {text}"))?;
    let tape = match &arguments.tape {
        Some(path) => tape_file::open(path)?,
        None => tape_file::in_memory(arguments.workload.tape(None)?)?,
    };
    let plan = RequestPlan::of(&tape, arguments.reply_bytes.map(|bytes| bytes as usize))?;
    let load = (arguments.connections as usize, arguments.depth as usize);
    play(&address, &plan, load, (arguments.warmup, arguments.duration))
        .map_err(|error| format!("--server {}: {error}", arguments.server))
}
