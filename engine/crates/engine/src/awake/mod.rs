//! The verb `awake`: keeps CPUs from entering idle states.
//!
//! On a physical machine, an idle CPU enters a state that takes tens of microseconds to leave. On a
//! virtual one it is returned to the hypervisor, which may take milliseconds to schedule it again. This
//! verb runs a spinning thread on each CPU. The threads have the policy SCHED_IDLE: they run only while
//! no other thread is runnable, and any other thread preempts them at once.

mod spinners;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cachemark_command::cpus::{parse, usable};
use cachemark_command::process::fail;
use cachemark_command::process::{StopSignals, print_json_line};
use serde::Serialize;

use spinners::{end, spinners};

#[derive(clap::Args)]
pub struct Arguments {
    /// Which CPUs, such as 0-1,3 [default: all that this process may use]
    #[arg(long)]
    cpus: Option<String>,
    /// Stop when stdin ends, so that the process does not outlive its caller
    #[arg(long)]
    stop_with_stdin: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "awake")]
struct Awake<'a> {
    cpus: &'a [usize],
    pid: u32,
}

/// Run the verb until a signal ends it. The exit code is 2 if the kernel refuses.
pub fn run(arguments: Arguments) -> ExitCode {
    keep_awake(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn keep_awake(arguments: &Arguments) -> Result<(), String> {
    let cpus = match &arguments.cpus {
        Some(text) => parse(text).map_err(|text| format!("--cpus {text}"))?,
        None => usable().map_err(|error| error.to_string())?,
    };
    // Before the threads start, so that no signal is missed.
    let signals = StopSignals::catch()?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads = spinners(&cpus, &stop)?;
    print_json_line(&Awake { cpus: &cpus, pid: std::process::id() })?;
    signals.wait(arguments.stop_with_stdin);
    end(threads, &stop);
    Ok(())
}
