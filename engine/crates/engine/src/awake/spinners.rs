//! Threads of the policy SCHED_IDLE that spin, one on each CPU.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use cachemark_load::pin_to_cpu;

/// The kernel counts the time of nicer threads apart, so that it is not taken for anybody's work.
const NICEST: i32 = 19;

/// A spinning thread on each CPU; all of them, or none and why.
pub fn spinners(cpus: &[usize], stop: &Arc<AtomicBool>) -> Result<Vec<JoinHandle<()>>, String> {
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

pub fn end(threads: Vec<JoinHandle<()>>, stop: &AtomicBool) {
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
    pin_to_cpu(cpu).map_err(|error| {
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
