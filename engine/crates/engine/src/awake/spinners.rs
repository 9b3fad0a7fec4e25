//! Spinning threads with the policy SCHED_IDLE, one on each CPU.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use cachemark_load::pin_to_cpu;

/// The kernel accounts the time of niced threads separately, so that it is not taken for work.
const NICEST: i32 = 19;

/// Start a spinning thread on each CPU. If one fails, stop all and return why.
pub fn spinners(cpus: &[usize], stop: &Arc<AtomicBool>) -> Result<Vec<JoinHandle<()>>, String> {
    let (started, results) = channel();
    let mut threads = Vec::with_capacity(cpus.len());
    for cpu in cpus.iter().copied() {
        let (started, stop) = (started.clone(), Arc::clone(stop));
        let named = thread::Builder::new().name(format!("awake-{cpu}"));
        let thread = named.spawn(move || spin(cpu, &started, &stop));
        threads.push(thread.map_err(|error| format!("no thread for CPU {cpu}: {error}"))?);
    }
    drop(started);
    match results.iter().take(cpus.len()).collect::<Result<Vec<()>, _>>() {
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

fn spin(cpu: usize, started: &Sender<Result<(), String>>, stop: &AtomicBool) {
    let result = pin_with_idle_policy(cpu);
    let is_pinned = result.is_ok();
    let _ = started.send(result);
    while is_pinned && !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Let the calling thread run on this CPU only, and only while the CPU is idle.
fn pin_with_idle_policy(cpu: usize) -> Result<(), String> {
    pin_to_cpu(cpu).map_err(|error| {
        format!("CPU {cpu}: the kernel does not let this process use it: {error}")
    })?;
    set_idle_policy().map_err(|error| format!("CPU {cpu}: the kernel refuses SCHED_IDLE: {error}"))
}

fn set_idle_policy() -> io::Result<()> {
    // SAFETY: it affects the calling thread only; the parameter outlives the call, and zeros are valid.
    let set = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter)
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it accesses no memory. Raising the nice value needs no permission.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
