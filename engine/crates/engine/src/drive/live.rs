//! A line for each second while a phase is played, and the interval log.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cachemark_load::{RunControl, cpu_times};
use cachemark_tape::Tape;

use crate::drive::files::Log;
use crate::drive::json_lines::Line;
use crate::drive::second::{Recorded, Second};

/// The current phase, and its output.
pub struct Live<'a> {
    pub name: &'a str,
    /// A prefill that fails as often as it stores is stopped.
    pub is_prefill: bool,
    pub tape: &'a Tape,
    /// Operations of the tape that earlier phases played.
    pub played_ops: u64,
    pub lines: Lines,
}

/// The lines for each second.
#[derive(Clone, Copy, PartialEq)]
pub enum Lines {
    Nothing,
    /// A line on stderr.
    Text,
    /// A line of JSON on stdout.
    Json,
}

/// How long threads may take to deliver an interval.
const GRACE: Duration = Duration::from_millis(100);
const EVERY: Duration = Duration::from_secs(1);
/// Why a line has no percentiles.
const NO_PERCENTILES: &str = " (percentiles at the end: operations without a reply may turn out to have failed seconds later)";

/// Print lines until `ended` is dropped. Then the last interval is added to the log; as JSON it is also printed,
/// if it is not much shorter than the others.
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
        let (ok, failed) = control.progress();
        let (cpu_now, now) = (cpu(), Instant::now());
        let since = (now - looked).as_secs_f64();
        let counted = (ok - before) as f64 / since;
        let shown = Second {
            phase: live.name,
            second,
            rate: interval.as_ref().map_or(counted, |interval| interval.rate),
            failed,
            tape_repeated: !live.is_prefill && live.played_ops + ok + failed > live.tape.op_count(),
            cpu_percent: 100.0 * (cpu_now - cpu_before).as_secs_f64() / since,
            recorded: interval.as_ref().map(Recorded::new),
        };
        match live.lines {
            Lines::Json if !over || interval.is_some_and(|last| last.length >= EVERY / 2) => {
                Line::Second(shown).print();
            }
            Lines::Text if !over => print_line(&shown.text(why)),
            _ => {}
        }
        if over {
            return Ok(());
        }
        if live.is_prefill && stall.look(ok, failed + control.lost_connections()) {
            control.stop();
        }
        (before, cpu_before, looked) = (ok, cpu_now, now);
    }
    Ok(())
}

/// Seconds in a row that added as many failures and lost connections as stored keys, or more.
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
        let (stored, failures) = (ok - self.ok, failed - self.failed);
        if stored > failures {
            self.seconds = 0;
        } else if failures > 0 {
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

fn print_line(line: &str) {
    let mut stderr = stderr().lock();
    let end = if stderr.is_terminal() { "\x1b[K\r" } else { "\n" };
    // A closed stderr is no reason to stop measuring.
    let _ = write!(stderr, "{line}{end}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the last of some seconds is one too many; each adds stored keys and failures.
    fn stalled(seconds: &[(u64, u64)]) -> bool {
        let (mut stall, mut ok, mut failed, mut stalled) = (Stall::default(), 0, 0, false);
        for added in seconds {
            (ok, failed) = (ok + added.0, failed + added.1);
            stalled = stall.look(ok, failed);
        }
        stalled
    }

    #[test]
    fn a_prefill_that_loses_a_connection_per_key_is_stalled() {
        assert!(stalled(&[(2, 2), (2, 2), (2, 2)]));
        assert!(stalled(&[(900, 0), (0, 2), (0, 2), (1, 2)]));
        assert!(!stalled(&[(2, 2), (2, 2), (900, 2)]));
        assert!(!stalled(&[(0, 0), (0, 0), (0, 0), (0, 0)]));
        assert!(!stalled(&[(3, 2), (3, 2), (3, 2)]));
    }
}
