//! One binary: `serve` the embedded server, `tape` a workload, be a `worker`, `drive` a server, or show
//! its own `fidelity`.

mod awake;
mod bench_store;
pub mod drive;
mod fidelity;
mod null;
mod options;
mod process;
mod serve;
mod tape;
mod worker;

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
    NullServer(null::server::Arguments),
    /// The floor of `drive`: write ready requests, parse no reply, print the CPU time
    NullClient(Box<null::client::Arguments>),
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
        Verb::NullServer(arguments) => null::server::run(arguments),
        Verb::NullClient(arguments) => null::client::run(*arguments),
    }
}
