//! The verb `tape`: write a workload as a tape, or show one.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cachemark_tape::Tape;
use clap::Subcommand;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::workload::WorkloadArguments;
use crate::{fail, presets, units};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write a tape
    Write(Box<WriteArguments>),
    /// Print a tape's header and first records
    Show(ShowArguments),
    /// List the workloads that have a name
    Presets {
        /// As one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
struct WriteArguments {
    /// The file to write
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Length of an open loop's schedule (30s)
    #[arg(long, value_parser = units::duration)]
    duration: Option<Duration>,
}

#[derive(clap::Args)]
struct ShowArguments {
    file: PathBuf,
    /// How many records to print
    #[arg(long, default_value_t = 10)]
    first: u64,
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
}

/// Runs the verb; the exit code is the process's own.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.action {
        Action::Write(arguments) => write(&arguments),
        Action::Show(arguments) => show(&arguments),
        Action::Presets { json: true } => {
            println!("{}", serde_json::to_string(&presets::all()).expect("plain values"));
            Ok(())
        }
        Action::Presets { json: false } => {
            list_presets();
            Ok(())
        }
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn write(arguments: &WriteArguments) -> Result<(), String> {
    let bytes = arguments.workload.tape(arguments.duration)?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    save(&arguments.out, &bytes)?;
    let tape = Tape::from_bytes(bytes).map_err(|error| error.to_string())?;
    let written = Written {
        path: &arguments.out,
        keys: tape.key_count(),
        ops: tape.op_count(),
        period_ns: tape.period_ns(),
        file_bytes: tape.file_bytes(),
        sha256,
    };
    println!("{}", serde_json::to_string(&written).expect("plain values"));
    Ok(())
}

/// Written under another name and renamed, so that a killed writer leaves no half tape.
fn save(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        // The first error is the one to tell; a temporary file that is not there is no second.
        let _ = fs::remove_file(&beside);
        format!("--out {}: cannot be written: {error}", path.display())
    })
}

fn show(arguments: &ShowArguments) -> Result<(), String> {
    let place = |error| format!("{}: {error}", arguments.file.display());
    let tape = Tape::open(&arguments.file).map_err(place)?;
    match print(&tape, arguments.first, BufWriter::new(stdout().lock())) {
        // Whoever reads has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|error| format!("stdout cannot be written: {error}")),
    }
}

fn list_presets() {
    for (name, preset) in presets::all() {
        println!("{name}: {}", preset.about);
        println!("    source   {}", preset.source);
        if !preset.assumed.is_empty() {
            println!("    assumed  {}", preset.assumed);
        }
        let options: Vec<String> =
            preset.options.iter().map(|(option, value)| format!("--{option} {value}")).collect();
        println!("    options  {}", options.join(" "));
    }
}

fn print(tape: &Tape, first: u64, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "keys        {}", tape.key_count())?;
    writeln!(out, "prefilled   {}", tape.prefill_count())?;
    writeln!(out, "operations  {}", tape.op_count())?;
    writeln!(out, "pool        {} bytes", tape.pool().len())?;
    writeln!(out, "seed        {}", tape.seed())?;
    writeln!(out, "verified    {}", if tape.verifies() { "yes" } else { "no" })?;
    match tape.is_open_loop() {
        true => writeln!(out, "schedule    open loop, {} ns a pass", tape.period_ns())?,
        false if tape.has_thinks() => writeln!(out, "schedule    closed loop, with time to think")?,
        false => writeln!(out, "schedule    closed loop")?,
    }
    for j in 0..first.min(tape.op_count()) {
        let op = tape.op(j);
        let keys: Vec<_> = tape.run(&op).map(|k| String::from_utf8_lossy(tape.key(k))).collect();
        let due =
            if tape.is_open_loop() { format!(" due {} ns", tape.due_ns(j)) } else { String::new() };
        let kind = op.verb.kind(op.noreply);
        writeln!(out, "{j:>10}  {kind:<15} {} bytes{due}  {}", op.length, keys.join(" "))?;
    }
    out.flush()
}
