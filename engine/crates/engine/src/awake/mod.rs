//! The verb `awake`: CPUs that have nothing to do run a thread that gives way to everything else.
//!
//! An idle CPU goes to sleep: on real machines into a state that takes tens of microseconds to leave,
//! on virtual ones it is given back to the hypervisor, which may take milliseconds to bring it back.
//! Each thread here has the policy SCHED_IDLE: it runs only while nothing else wants to, and whatever
//! wakes takes its CPU at once.

mod spinners;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::options::cpus::{parse, usable};
use crate::process::fail;
use crate::process::{StopSignals, print_json_line};
use spinners::{end, spinners};

#[derive(clap::Args)]
pub struct Arguments {
    /// Which CPUs, such as 0-1,3; all that this process may use by default
    #[arg(long)]
    cpus: Option<String>,
    /// Stop when stdin ends, so that nothing is left behind by a caller that dies
    #[arg(long)]
    stop_with_stdin: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "awake")]
struct Awake<'a> {
    cpus: &'a [usize],
    pid: u32,
}

/// Runs the verb until it is told to stop; exit code 2 where the kernel refuses.
pub fn run(arguments: Arguments) -> ExitCode {
    keep_awake(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn keep_awake(arguments: &Arguments) -> Result<(), String> {
    let cpus = match &arguments.cpus {
        Some(text) => parse(text).map_err(|text| format!("--cpus {text}"))?,
        None => usable().map_err(|error| error.to_string())?,
    };
    // Watched before anything spins, so that no signal is missed.
    let signals = StopSignals::catch()?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads = spinners(&cpus, &stop)?;
    print_json_line(&Awake { cpus: &cpus, pid: std::process::id() })?;
    signals.wait(arguments.stop_with_stdin);
    end(threads, &stop);
    Ok(())
}
