//! A kind of call, and the CPU time of one.

use std::io::Error;

use rustix::time::{ClockId, clock_gettime};

/// A kind of call. `batch` makes some calls and returns the CPU time of one of them, in ns.
pub struct Kind {
    pub name: &'static str,
    pub batch: Box<dyn FnMut() -> Result<f64, Error>>,
}

/// The CPU time of this thread for one `call`, in ns, over `times` of them.
pub fn cpu_time_of(times: u32, mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let before = thread_cpu_ns();
    for _ in 0..times {
        call()?;
    }
    Ok((thread_cpu_ns() - before) as f64 / f64::from(times))
}

fn thread_cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
