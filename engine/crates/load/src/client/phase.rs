//! A phase of a trial: what is played, when, and by which thread.

use std::time::Duration;

use cachemark_tape::{Lane, Tape};

use crate::io_traits::Clock;
use crate::player::WorkSlice;
use crate::record::{SECTION_COUNT, Window};
use crate::transport::Monotonic;

/// The limits of a phase.
#[derive(Clone, Copy, Debug)]
pub enum PhaseLimits {
    Prefill,
    Play { start_in_ns: u64, ops: Option<u64>, duration_ns: Option<u64> },
}

/// Threads need time to start and to allocate their metrics: a window starts this much later, plus an
/// amount per thread.
const START_DELAY_NS: u64 = 10_000_000;
const START_DELAY_PER_THREAD_NS: u64 = 5_000_000;
/// "No end", but small enough that sums of times do not overflow.
const NO_END_NS: u64 = u64::MAX / 4;

/// The window of a phase that starts as soon as the threads are ready.
pub(crate) fn window_of_phase(limits: PhaseLimits, timeout: Duration, threads: usize) -> Window {
    let ahead_ns = START_DELAY_NS + START_DELAY_PER_THREAD_NS * threads as u64;
    let (start_in_ns, duration_ns) = match limits {
        PhaseLimits::Prefill => (0, None),
        PhaseLimits::Play { start_in_ns, duration_ns, .. } => {
            (start_in_ns.max(ahead_ns), duration_ns)
        }
    };
    let start_ns = Monotonic.now_ns() + start_in_ns;
    Window {
        start_ns,
        end_ns: start_ns + duration_ns.unwrap_or(NO_END_NS),
        timeout_ns: timeout.as_nanos() as u64,
        section_ns: duration_ns
            .map(|duration_ns| duration_ns / SECTION_COUNT as u64)
            .filter(|ns| *ns > 0),
    }
}

/// The part of the tape that thread `number` plays. Threads and whole clients share it by the same
/// rule.
pub fn work_slice_of(
    limits: PhaseLimits,
    (threads, (segment, segments)): (usize, (u64, u64)),
    number: usize,
    tape: &Tape,
) -> WorkSlice {
    let threads = threads as u64;
    let lane = segment * threads + number as u64;
    let lanes = segments * threads;
    match limits {
        PhaseLimits::Prefill => WorkSlice::Prefill { first: lane, stride: lanes },
        PhaseLimits::Play { ops, .. } => WorkSlice::Lane {
            lane: Lane::new(lane, lanes, tape.op_count(), tape.group()),
            ops: ops
                .map_or(u64::MAX, |ops| ops / threads + u64::from((number as u64) < ops % threads)),
        },
    }
}
