//! One binary: `serve` the embedded server, `tape` a workload, be a `worker`, `drive` a server, or show
//! its own `fidelity`.

mod awake;
mod bench_store;
mod cpus;
pub mod drive;
mod drive_errors;
mod drive_files;
mod drive_live;
mod drive_play;
mod drive_search;
mod drive_table;
mod drive_warnings;
mod fidelity;
mod messages;
mod null;
mod presets;
mod scripted;
mod serve;
mod store_worker;
mod tape;
mod units;
mod way;
mod worker;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cachemark-engine", version, about = "The native half of cachemark")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the memcached protocol from memory, or answer reads by a script
    Serve(serve::Arguments),
    /// Write a workload as a tape, or show one
    Tape(tape::Arguments),
    /// Be the native client behind the worker protocol (JSON lines on stdin and stdout)
    Worker(worker::Arguments),
    /// Load a server from the command line and print what it took
    Drive(Box<drive::Arguments>),
    /// Hold the native client against answers that are known beforehand
    Fidelity(fidelity::Arguments),
    /// Keep CPUs from going to sleep with threads that give way to everything
    Awake(awake::Arguments),
    /// What the item store costs and keeps, beside memcached
    BenchStore(bench_store::Arguments),
    /// The floor of `serve`: answer each request with the same bytes, reading none of them
    NullServer(null::ServerArguments),
    /// The floor of `drive`: write ready requests, parse no reply, print the CPU time
    NullClient(Box<null::ClientArguments>),
}

/// Carry out what the command line says.
pub fn main() -> ExitCode {
    match Arguments::parse().verb {
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Tape(arguments) => tape::run(arguments),
        Verb::Worker(arguments) => worker::run(arguments),
        Verb::Drive(arguments) => drive::run(*arguments),
        Verb::Fidelity(arguments) => fidelity::run(arguments),
        Verb::Awake(arguments) => awake::run(arguments),
        Verb::BenchStore(arguments) => bench_store::run(arguments),
        Verb::NullServer(arguments) => null::run_server(arguments),
        Verb::NullClient(arguments) => null::run_client(*arguments),
    }
}

/// One line on stderr and the exit code for bad input.
fn fail(error: String) -> ExitCode {
    eprintln!("cachemark-engine: {error}");
    ExitCode::from(2)
}
