//! `tape write`.

use std::path::PathBuf;
use std::time::Duration;

use cachemark_tape::Tape;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::options::units;
use crate::options::workload::WorkloadArguments;
use crate::process::print_compact_json;
use crate::whole_file;

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
    /// What a server holds at most when the tape was played.
    stored_items: u64,
    stored_key_bytes: u64,
    stored_value_bytes: u64,
}

pub fn write(arguments: &Arguments) -> Result<(), String> {
    let workload = arguments.workload.clone().with_varying_lengths(arguments.vary_lengths);
    let bytes = workload.tape(arguments.duration)?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    whole_file::write(&arguments.out, &bytes).map_err(|error| {
        format!("--out {}: cannot be written: {error}", arguments.out.display())
    })?;
    let tape = Tape::from_bytes(bytes).map_err(|error| error.to_string())?;
    let stored = tape.data_set();
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
    };
    print_compact_json(&written);
    Ok(())
}
