//! The verb `bench-store`: the item store beside memcached in the same run. It prints the bytes of an item, hit
//! ratios, the time of a read (in the process, in shared memory and over the network), and the longest
//! times of a store.

mod hits;
mod memory;
mod pauses;
mod peer;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use cachemark_command::process::{fail, print_text};
use cachemark_command::units;
use comfy_table::Table;

#[derive(clap::Args)]
pub struct Arguments {
    /// Memory to fill for the tables of bytes and of pauses
    #[arg(long, default_value = "1g", value_parser = units::bytes)]
    memory: u64,
    /// Memory of each cache for the table of hits
    #[arg(long, default_value = "32m", value_parser = units::bytes)]
    cache: u64,
    /// Reads of each row of the table of hits
    #[arg(long, default_value = "1M", value_parser = units::whole)]
    reads: u64,
    /// Rounds of the table of times
    #[arg(long, default_value = "7", value_parser = units::whole)]
    rounds: u64,
    /// Print this table only; pauses are the times of single stores
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// The memcached program; it has to support `-U 0`
    #[arg(long, default_value = "memcached")]
    memcached: PathBuf,
    /// Read from the store in this file and print the time of a read; used for the other process
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

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match &arguments.peek {
        Some(path) => speed::peek(path),
        None => tables(&arguments),
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn tables(arguments: &Arguments) -> Result<(), String> {
    let is_selected = |part: Part| arguments.only.is_none_or(|only| only == part);
    if is_selected(Part::Memory) {
        show("Bytes", memory::table(arguments.memory as usize)?);
    }
    if is_selected(Part::Hits) {
        show("Hits", hits::table(arguments.cache, arguments.reads, &arguments.memcached)?);
    }
    if is_selected(Part::Speed) {
        show("Reads", speed::table(arguments.rounds, &arguments.memcached)?);
    }
    if is_selected(Part::Pauses) {
        show("Stores, one by one", pauses::table(arguments.memory as usize)?);
    }
    Ok(())
}

fn show(title: &str, mut table: Table) {
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    print_text(format_args!("{title}\n{table}\n\n"));
}
