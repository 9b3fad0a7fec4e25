//! The CPU time of this process, and the CPU that a thread runs on.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// CPU time of this process so far in ns: (user, system).
pub fn cpu_times() -> (u64, u64) {
    // SAFETY: getrusage fills the struct that it is given, and all zeros are a valid rusage.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Let the calling thread run on this CPU only.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}
