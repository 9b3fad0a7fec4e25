//! The verb `awake`: CPUs that have nothing to do run a thread that gives way to everything else.
//!
//! An idle CPU goes to sleep: on real machines into a state that takes tens of microseconds to leave,
//! on virtual ones it is given back to the hypervisor, which may take milliseconds to bring it back.
//! Each thread here has the policy SCHED_IDLE: it runs only while nothing else wants to, and whatever
//! wakes takes its CPU at once.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use cachemark_load::stay_on;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cpus::{parse, usable};
use crate::fail;
use crate::serve::{tell, until_stdin_ends};

/// The kernel counts the time of nicer threads apart, so that it is not taken for anybody's work.
const NICEST: i32 = 19;

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
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| error.to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads = spinners(&cpus, &stop)?;
    tell(&Awake { cpus: &cpus, pid: std::process::id() })?;
    let (over, waited) = channel();
    if arguments.stop_with_stdin {
        let over = over.clone();
        thread::spawn(move || {
            until_stdin_ends();
            let _ = over.send(());
        });
    }
    thread::spawn(move || {
        signals.forever().next();
        let _ = over.send(());
    });
    let _ = waited.recv();
    end(threads, &stop);
    Ok(())
}

/// A spinning thread on each CPU; all of them, or none and why.
fn spinners(cpus: &[usize], stop: &Arc<AtomicBool>) -> Result<Vec<JoinHandle<()>>, String> {
    let (told, ready) = channel();
    let mut threads = Vec::with_capacity(cpus.len());
    for cpu in cpus.iter().copied() {
        let (told, heard) = (told.clone(), Arc::clone(stop));
        let named = thread::Builder::new().name(format!("awake-{cpu}"));
        let thread = named.spawn(move || spin(cpu, &told, &heard));
        threads.push(thread.map_err(|error| format!("no thread for CPU {cpu}: {error}"))?);
    }
    drop(told);
    match ready.iter().take(cpus.len()).collect::<Result<Vec<()>, _>>() {
        Ok(_) => Ok(threads),
        Err(text) => {
            end(threads, stop);
            Err(text)
        }
    }
}

fn end(threads: Vec<JoinHandle<()>>, stop: &AtomicBool) {
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

fn spin(cpu: usize, told: &Sender<Result<(), String>>, stop: &AtomicBool) {
    let settled = settle(cpu);
    let goes_on = settled.is_ok();
    let _ = told.send(settled);
    while goes_on && !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Have the calling thread run on that CPU alone, and only when nothing else does.
fn settle(cpu: usize) -> Result<(), String> {
    stay_on(cpu).map_err(|error| {
        format!("CPU {cpu}: the kernel lets no thread of ours run there: {error}")
    })?;
    give_way().map_err(|error| format!("CPU {cpu}: the kernel refuses SCHED_IDLE: {error}"))
}

fn give_way() -> io::Result<()> {
    // SAFETY: of the calling thread; the parameter lives as long as the call, and all zeros is valid.
    let set = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter)
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: touches no memory. Who has the policy may be nicer too: it needs no permission.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
