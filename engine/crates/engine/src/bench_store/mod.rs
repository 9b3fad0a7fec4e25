//! The verb `bench-store`: what the item store costs and what it keeps, against memcached in the
//! same run: bytes, hit ratios, the time of a read in the process, in shared memory and over the network;
//! and how long a single store takes at most.

mod hits;
mod memory;
mod pauses;
mod peer;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use comfy_table::Table;

use crate::options::units;
use crate::process::fail;

#[derive(clap::Args)]
pub struct Arguments {
    /// Memory that is filled for the tables of bytes and of stores
    #[arg(long, default_value = "1g", value_parser = units::bytes)]
    memory: u64,
    /// Memory of both caches for the table of hits
    #[arg(long, default_value = "32m", value_parser = units::bytes)]
    cache: u64,
    /// Reads of each row of the table of hits
    #[arg(long, default_value = "1M", value_parser = units::whole)]
    reads: u64,
    /// Rounds of the table of times
    #[arg(long, default_value = "7", value_parser = units::whole)]
    rounds: u64,
    /// Only this table; pauses are stores timed one by one
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// memcached's program, which must know `-U 0`
    #[arg(long, default_value = "memcached")]
    memcached: PathBuf,
    /// Read from the store in this file and print the time of a read: what the other process does
    #[arg(long, hide = true)]
    peek: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Memory,
    Hits,
    Speed,
    Pauses,
}

/// Runs the verb; the exit code is the process's own.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match &arguments.peek {
        Some(path) => speed::peek(path),
        None => tables(&arguments),
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn tables(arguments: &Arguments) -> Result<(), String> {
    let wanted = |part: Part| arguments.only.is_none_or(|only| only == part);
    if wanted(Part::Memory) {
        show("Bytes", memory::table(arguments.memory as usize)?);
    }
    if wanted(Part::Hits) {
        show("Hits", hits::table(arguments.cache, arguments.reads, &arguments.memcached)?);
    }
    if wanted(Part::Speed) {
        show("Reads", speed::table(arguments.rounds, &arguments.memcached)?);
    }
    if wanted(Part::Pauses) {
        show("Stores, one by one", pauses::table(arguments.memory as usize)?);
    }
    Ok(())
}

fn show(title: &str, mut table: Table) {
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    println!("{title}\n{table}\n");
}
