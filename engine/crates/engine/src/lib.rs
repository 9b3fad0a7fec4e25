//! The program `cachemark-engine`: one verb for each folder.

mod awake;
mod completion;
mod distance;
pub mod drive;
mod fault_proxy;
mod fidelity;
mod man;
mod memcached;
mod null;
mod options;
mod serve;
mod store;
mod tape;
mod worker;

use std::process::ExitCode;

use cachemark_command::process;
use cachemark_measuring_verbs::{bench_store, stampede, unit_costs};
use cachemark_trace_verbs::{record, trace};
use clap::{CommandFactory, Parser, Subcommand};

/// The text of `--version` after the name: version, commit, what it was built of, and how.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("CACHEMARK_COMMIT"),
    ", ",
    env!("CACHEMARK_ORIGIN"),
    "; ",
    env!("CACHEMARK_BUILD"),
    ")"
);

#[derive(Parser)]
#[command(name = "cachemark-engine", version, long_version = VERSION, about = "The native part of cachemark")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the memcached protocol from memory, or answer reads as a script says
    Serve(serve::Arguments),
    /// The same server behind memcached's own command line: memcached's options, defaults and exit statuses
    Memcached(memcached::Arguments),
    /// Write a workload as a tape, or show one
    Tape(tape::Arguments),
    /// Convert traces, and print statistics of them
    Trace(trace::Arguments),
    /// Record the traffic of a running memcached, by its `watch`, as a trace
    Record(record::Arguments),
    /// Run the native client as a worker (worker protocol: JSON lines on stdin and stdout)
    Worker(worker::Arguments),
    /// Load a server from the command line and print its throughput and latency
    Drive(Box<drive::Arguments>),
    /// Let many callers miss one expired key at once, with and without memcached's win and stale flags
    Stampede(stampede::Arguments),
    /// Check the native client against cases whose results are known
    Fidelity(fidelity::Arguments),
    /// Stand between clients and their server, and misbehave on command (JSON lines on stdin)
    FaultProxy(fault_proxy::Arguments),
    /// Stand between clients and their servers, and hold bytes as long as a distance would
    Distance(distance::Arguments),
    /// Keep CPUs from entering idle states, with threads that run only on idle CPUs
    Awake(awake::Arguments),
    /// Measure the CPU time of one system call of each kind, a wait and a page fault
    UnitCosts(unit_costs::Arguments),
    /// Measure the item store's memory, hit ratios and speed, beside memcached
    BenchStore(bench_store::Arguments),
    /// Make, show, empty and destroy a cache in shared memory, for programs that use cachemark_store.h
    Store(store::Arguments),
    /// The least a server can do: answer each request with the same bytes, without parsing it
    NullServer(null::server::Arguments),
    /// The least a client can do: write prepared requests, parse no reply, print the CPU time
    NullClient(Box<null::client::Arguments>),
    /// Print a script that completes verbs and options in a shell
    Completion(completion::Arguments),
    /// Write manual pages into a folder
    Man(man::Arguments),
}

/// Parse the command line and run its verb.
pub fn main() -> ExitCode {
    process::unblock_ending_signals();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(shown) => return process::show(&shown),
    };
    match arguments.verb {
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Memcached(arguments) => memcached::run(arguments),
        Verb::Tape(arguments) => tape::run(arguments),
        Verb::Trace(arguments) => trace::run(arguments),
        Verb::Record(arguments) => record::run(arguments),
        Verb::Worker(arguments) => worker::run(arguments),
        Verb::Drive(arguments) => drive::run(*arguments),
        Verb::Stampede(arguments) => stampede::run(arguments),
        Verb::Fidelity(arguments) => fidelity::run(arguments),
        Verb::FaultProxy(arguments) => fault_proxy::run(arguments),
        Verb::Distance(arguments) => distance::run(arguments),
        Verb::Awake(arguments) => awake::run(arguments),
        Verb::UnitCosts(arguments) => unit_costs::run(arguments),
        Verb::BenchStore(arguments) => bench_store::run(arguments),
        Verb::Store(arguments) => store::run(arguments),
        Verb::NullServer(arguments) => null::server::run(arguments),
        Verb::NullClient(arguments) => null::client::run(*arguments),
        Verb::Completion(arguments) => completion::run(arguments, Arguments::command()),
        Verb::Man(arguments) => man::run(arguments, Arguments::command()),
    }
}
