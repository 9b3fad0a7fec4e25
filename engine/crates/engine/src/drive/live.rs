//! A line for each second while a phase is played, and the interval log.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cachemark_load::{Interval, RunControl, cpu_times, percentile_ns};
use cachemark_tape::Tape;

use crate::drive::files::Log;
use crate::drive::format::time;
use crate::drive::totals::{hits, responses};

/// The phase that is played, and whether its lines are printed.
pub struct Live<'a> {
    pub name: &'a str,
    /// A prefill in which nothing but failures is added is stopped.
    pub is_prefill: bool,
    pub tape: &'a Tape,
    pub quiet: bool,
}

/// How long threads may take to deliver an interval.
const GRACE: Duration = Duration::from_millis(100);
const EVERY: Duration = Duration::from_secs(1);
/// Why a line has no percentiles.
const NO_PERCENTILES: &str = " (percentiles at the end: operations without a reply may turn out to have failed seconds later)";

/// Print lines until `ended` is dropped. Then the last interval is added to the log.
pub fn watch(
    live: &Live<'_>,
    control: &RunControl,
    ended: &Receiver<()>,
    mut log: Option<&mut Log>,
) -> Result<(), String> {
    let why = if control.has_intervals() { "" } else { NO_PERCENTILES };
    let begun = Instant::now();
    let (mut before, mut cpu_before, mut looked) = (0, cpu(), begun);
    let mut stall = Stall::default();
    for second in 1.. {
        let next = begun + EVERY * second + GRACE;
        let wait = next.saturating_duration_since(Instant::now());
        let over = ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        let interval = control.interval();
        if let (Some(log), Some(interval)) = (&mut log, &interval) {
            log.add(interval)?;
        }
        if over {
            return Ok(());
        }
        let (ok, failed) = control.progress();
        if live.is_prefill && stall.look(ok, failed) {
            control.stop();
        }
        let (cpu_now, now) = (cpu(), Instant::now());
        let since = (now - looked).as_secs_f64();
        let used = (cpu_now - cpu_before).as_secs_f64() / since;
        if !live.quiet {
            let rate = (ok - before) as f64 / since;
            print_line(&line(live.name, second, rate, failed, used, (interval.as_ref(), why)));
        }
        (before, cpu_before, looked) = (ok, cpu_now, now);
    }
    Ok(())
}

/// Seconds in a row in which nothing but failures was added.
#[derive(Default)]
struct Stall {
    ok: u64,
    failed: u64,
    seconds: u32,
}

impl Stall {
    const MOST_SECONDS: u32 = 3;

    /// Whether there were too many of them.
    fn look(&mut self, ok: u64, failed: u64) -> bool {
        if ok > self.ok {
            self.seconds = 0;
        } else if failed > self.failed {
            self.seconds += 1;
        }
        (self.ok, self.failed) = (ok, failed);
        self.seconds >= Stall::MOST_SECONDS
    }
}

fn cpu() -> Duration {
    let (user_ns, system_ns) = cpu_times();
    Duration::from_nanos(user_ns + system_ns)
}

fn line(
    name: &str,
    second: u32,
    rate: f64,
    failed: u64,
    cpus: f64,
    (interval, why): (Option<&Interval>, &str),
) -> String {
    let mut line = format!("{name} {second} s: ");
    let Some(Interval { metrics, rate, .. }) = interval else {
        line += &format!("{rate:.0} ops/s, {failed} errors, CPU {:.0} %", cpus * 100.0);
        return line + why;
    };
    line += &format!("{rate:.0} ops/s");
    let times = responses(metrics);
    for (percent, name) in [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9")] {
        if !times.is_empty() {
            line += &format!(", {name} {}", time(percentile_ns(&times, percent)));
        }
    }
    let (hits, misses) = hits(metrics);
    if hits + misses > 0 {
        line += &format!(", hits {:.1} %", 100.0 * hits as f64 / (hits + misses) as f64);
    }
    line += &format!(", {failed} errors");
    if !metrics.send_lag.is_empty() {
        line += &format!(", lag p99 {}", time(percentile_ns(&metrics.send_lag, 99.0)));
    }
    line + &format!(", CPU {:.0} %", cpus * 100.0)
}

fn print_line(line: &str) {
    let mut stderr = stderr().lock();
    let end = if stderr.is_terminal() { "\x1b[K\r" } else { "\n" };
    // A closed stderr is no reason to stop measuring.
    let _ = write!(stderr, "{line}{end}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_percentiles_says_why() {
        let text = line("measure", 3, 1200.4, 1, 0.5, (None, NO_PERCENTILES));
        assert!(text.starts_with("measure 3 s: 1200 ops/s, 1 errors, CPU 50 % (perc"), "{text}");
        assert!(line("measure", 3, 1.0, 0, 0.5, (None, "")).ends_with("CPU 50 %"));
    }
}
