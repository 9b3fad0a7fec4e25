//! `tape write`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cachemark_tape::Tape;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::options::units;
use crate::options::workload::WorkloadArguments;
use crate::process::print_compact_json;

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
struct Written<'a> {
    path: &'a Path,
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
    save(&arguments.out, &bytes)?;
    let tape = Tape::from_bytes(bytes).map_err(|error| error.to_string())?;
    let stored = tape.data_set();
    let written = Written {
        path: &arguments.out,
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

/// Write the file under another name and rename it, so that a killed process leaves no incomplete tape.
/// What is no regular file, such as a device, must not be replaced: it is written into.
fn save(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return fs::write(path, bytes)
            .map_err(|error| format!("--out {}: cannot be written: {error}", path.display()));
    }
    // The target of a symbolic link is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        // Report the first error only. The temporary file may not exist.
        let _ = fs::remove_file(&beside);
        format!("--out {}: cannot be written: {error}", path.display())
    })
}
