//! `tape write`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cachemark_command::process::print_compact_json;
use cachemark_command::units;
use cachemark_command::whole_file;
use cachemark_tape::Tape;
use cachemark_trace::ImportedTrace;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::options::workload::WorkloadArguments;

/// A client in an interpreter reads this number of operations in some ten seconds.
const MOST_OPS: u64 = 1_000_000;

#[derive(clap::Args)]
pub struct Arguments {
    /// The file to write
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Give each write of a key another length, in the range of --size: a value's length then shows which write it
    /// comes from
    #[arg(long)]
    vary_lengths: bool,
    /// Other operations for each number, with the same keys, sizes and popularity of keys
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1 << 32))]
    draws: u64,
    /// Without --ops: how many operations the fastest client plays in a window of this tape. It says how long the tape
    /// of a closed loop has to be
    #[arg(long, value_parser = units::whole, conflicts_with = "ops")]
    window_ops: Option<u64>,
    /// Give the writes of a share of the keys other values, for a closed loop of all these callers of all workers:
    /// their reads then show a write that was lost
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    generations: Option<u32>,
    /// With generations: others play the same tape on the same server, so that only a loss of all writes can be seen
    #[arg(long, requires = "generations")]
    shared_server: bool,
    /// Length of an open loop's schedule (30s)
    #[arg(long, value_parser = units::duration)]
    duration: Option<Duration>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "tape")]
struct Written {
    /// As text, in which bytes that are none become a replacement character.
    path: String,
    keys: u32,
    ops: u64,
    period_ns: u64,
    file_bytes: u64,
    sha256: String,
    /// The most items that a server holds after the tape was played.
    stored_items: u64,
    stored_key_bytes: u64,
    stored_value_bytes: u64,
    reuse: ReuseOfKeys,
    /// The import, if the workload is a trace.
    trace: Option<TraceFacts>,
}

/// How a tape differs from its trace.
#[derive(Serialize)]
struct TraceFacts {
    format: &'static str,
    lines: u64,
    left_out: BTreeMap<String, u64>,
    other_lines: BTreeMap<String, u64>,
    unused_columns: Vec<String>,
    unfilled: u64,
    whole_seconds: bool,
}

impl TraceFacts {
    fn of(trace: ImportedTrace) -> TraceFacts {
        TraceFacts {
            format: trace.format,
            lines: trace.lines,
            whole_seconds: trace.recording.has_whole_seconds(),
            left_out: trace.left_out,
            other_lines: trace.other_lines,
            unused_columns: trace.unused_columns,
            unfilled: trace.unfilled,
        }
    }
}

/// How operations use the same keys. `kept` and `lost`: how hits depend on the operations before them if the server
/// keeps what is stored, and if it may lose it.
#[derive(Serialize)]
struct ReuseOfKeys {
    used_keys: u64,
    fills: bool,
    kept: &'static str,
    lost: &'static str,
}

pub fn write(arguments: &Arguments) -> Result<(), String> {
    let mut workload = arguments.workload.clone().for_tape(arguments.vary_lengths, arguments.draws);
    if let Some(window_ops) = arguments.window_ops {
        workload = workload.for_window(window_ops, MOST_OPS);
    }
    let (bytes, trace) = workload.tape_and_trace(arguments.duration)?;
    let tape = Tape::from_bytes(bytes).map_err(|error| error.to_string())?;
    let tape = match arguments.generations {
        Some(lanes) => tape.with_generations(lanes, !arguments.shared_server),
        None => tape,
    };
    let digest = Sha256::digest(tape.as_bytes());
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    whole_file::write(&arguments.out, tape.as_bytes()).map_err(|error| {
        format!("--out {}: cannot be written: {error}", arguments.out.display())
    })?;
    let stored = tape.data_set();
    let reuse = tape.reuse();
    let written = Written {
        path: arguments.out.display().to_string(),
        keys: tape.key_count(),
        ops: tape.op_count(),
        period_ns: tape.period_ns(),
        file_bytes: tape.file_bytes(),
        sha256,
        stored_items: stored.items,
        stored_key_bytes: stored.key_bytes,
        stored_value_bytes: stored.value_bytes,
        reuse: ReuseOfKeys {
            used_keys: reuse.used_keys,
            fills: reuse.fills,
            kept: reuse.kept.name(),
            lost: reuse.lost.name(),
        },
        trace: trace.map(TraceFacts::of),
    };
    print_compact_json(&written);
    Ok(())
}
