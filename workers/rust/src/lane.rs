//! The loops that are measured: one lane is one thread with its session and its executor.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;
use nix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Session, Setup};
use crate::course::{Course, SECTIONS};
use crate::judge::Ending;
use crate::tally::{Tally, histogram};
use crate::tape::{KINDS, Operation, Tape, Verb};

/// A sleep is late by some tens of µs; the rest of a wait is spent asking the clock.
const SPIN_NS: u64 = 60_000;
/// A wait looks this often whether it is still wanted.
const LOOK_NS: u64 = 20_000_000;

/// ns of a clock that only goes forward.
pub fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Shared by the lanes of a run. `end_ns` moves to the past when the run is stopped.
pub struct Window {
    pub start_ns: u64,
    pub end_ns: AtomicU64,
    pub stopped: AtomicBool,
    pub timeout_ns: u64,
    in_flight: AtomicU64,
    pub peak: AtomicU64,
}

impl Window {
    /// A window that begins at an instant of the clock and lasts so long.
    pub fn new(start_ns: u64, duration_ns: Option<u64>, timeout_ns: u64) -> Window {
        let end_ns = start_ns + duration_ns.unwrap_or(u64::MAX / 4);
        Window {
            start_ns,
            end_ns: end_ns.into(),
            stopped: false.into(),
            timeout_ns,
            in_flight: 0.into(),
            peak: 0.into(),
        }
    }

    /// End it now.
    pub fn stop(&self) {
        self.end_ns.fetch_min(clock_ns(), Relaxed);
        self.stopped.store(true, Relaxed);
    }

    /// Wait for an instant. False if the run was stopped before it came.
    fn wait_until(&self, instant_ns: u64) -> bool {
        loop {
            let now = clock_ns();
            if now >= instant_ns {
                return true;
            }
            if self.stopped.load(Relaxed) {
                return false;
            }
            match (instant_ns - now).checked_sub(SPIN_NS) {
                Some(left) if left > 0 => {
                    std::thread::sleep(Duration::from_nanos(left.min(LOOK_NS)))
                }
                _ => spin_loop(),
            }
        }
    }

    /// What was due in the window and is not sent by this instant never is.
    fn drain_ns(&self) -> u64 {
        let grace = if self.stopped.load(Relaxed) { 0 } else { 2 * self.timeout_ns };
        self.end_ns.load(Relaxed) + grace
    }
}

/// What the main thread sees of a lane that plays.
#[derive(Default)]
pub struct Watch {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// When the call that is going on began; 0 between calls.
    pub called_ns: AtomicU64,
}

/// What a run asks of each lane.
#[derive(Clone)]
pub struct Task {
    pub window: Arc<Window>,
    pub prefill: bool,
    pub limit: u64,
    /// It ends with an answered command.
    pub quiet: bool,
}

pub struct Lane<S: Session> {
    pub session: S,
    runtime: Runtime,
    operations: Vec<Operation>,
    place: usize,
    lanes: usize,
    pub notes: Notes,
}

/// What a lane notes in a run.
pub struct Notes {
    tape: &'static Tape,
    /// By section of the window and kind; a window without sections has one of them.
    pub tallies: Vec<Vec<Option<Tally>>>,
    section: usize,
    pub course: Course,
    pub lag: Histogram<u64>,
    pub watch: Arc<Watch>,
    pub sent_ns: u64,
    pub ended_ns: u64,
    pub bound: u64,
    pub unsent: u64,
    pub barriers: u64,
    pub reconnects_before: u64,
}

impl Notes {
    fn new(tape: &'static Tape, duration_ns: Option<u64>) -> Notes {
        let prefill = 2 * usize::from(Verb::SET.0);
        let played = |kind| kind == prefill || tape.kinds.contains(&kind);
        let tallies = || (0..KINDS).map(|kind| played(kind).then(Tally::new)).collect();
        let sections = if duration_ns.is_some() { SECTIONS } else { 1 };
        Notes {
            tape,
            tallies: (0..sections).map(|_| tallies()).collect(),
            section: 0,
            course: Course::new(duration_ns),
            lag: histogram(),
            watch: Arc::default(),
            sent_ns: 0,
            ended_ns: 0,
            bound: 0,
            unsent: 0,
            barriers: 0,
            reconnects_before: 0,
        }
    }

    fn tally(&mut self, op: &Operation) -> &mut Tally {
        self.tallies[self.section][op.kind].as_mut().expect("a kind of the tape")
    }
}

/// A counter that only its lane writes.
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// One operation; the instant of its end. `due_ns` is given in an open loop.
async fn play_one<S: Session>(
    session: &mut S,
    notes: &mut Notes,
    op: &Operation,
    window: &Window,
    due_ns: Option<u64>,
) -> u64 {
    let began = clock_ns();
    notes.watch.called_ns.store(began, Relaxed);
    let result = session.call(op).await;
    let now = clock_ns();
    notes.watch.called_ns.store(0, Relaxed);
    let mut verdict = match &result {
        Ok(answer) => S::judge(notes.tape, op, answer),
        Err(error) => crate::judge::Verdict::of(S::failure(op, error)),
    };
    if now - began >= window.timeout_ns {
        verdict.ending = Ending::Timeout;
    }
    if now >= notes.course.end_ns {
        notes.section = notes.course.advance(now);
    }
    let timed = notes.tally(op).note(op, &verdict, now - began);
    if let Some(due_ns) = due_ns {
        notes.lag.saturating_record((began - due_ns).max(1));
        if timed {
            notes.tally(op).response.saturating_record((now - due_ns).max(1));
        }
    }
    if verdict.ending < Ending::Wrong {
        notes.course.note(now - due_ns.unwrap_or(began));
        add_one(&notes.watch.done);
    } else {
        add_one(&notes.watch.failed);
    }
    now
}

impl<S: Session> Lane<S> {
    /// Connect. The error says what is wrong with which server.
    pub fn open(
        setup: &Setup,
        shared: S::Shared,
        tape: &'static Tape,
        t: usize,
    ) -> Result<Lane<S>, String> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let session = runtime.block_on(S::open(setup, shared))?;
        let (place, lanes) = (setup.segment.0 * setup.threads + t, setup.segment.1 * setup.threads);
        Ok(Lane {
            session,
            runtime,
            operations: tape.lane(place, lanes),
            place,
            lanes,
            notes: Notes::new(tape, None),
        })
    }

    /// Play a phase, in a thread of this lane's own.
    pub fn play(mut self, task: Task) -> Lane<S> {
        let Lane { session, runtime, operations, place, lanes, notes } = &mut self;
        let window = &*task.window;
        // So that a sleep ends when it should.
        let _ = nix::sys::prctl::set_timerslack(1);
        if window.wait_until(window.start_ns) {
            runtime.block_on(async {
                if task.prefill {
                    prefill(session, notes, window, *place, *lanes).await;
                } else if notes.tape.times.is_some() {
                    opened(session, notes, window, operations, task.limit).await;
                } else {
                    closed(session, notes, window, operations, task.limit).await;
                }
                if task.quiet {
                    end_quiet(session, notes).await;
                }
            });
        }
        self
    }

    /// Forget the last run; the next lasts so long.
    pub fn reset(&mut self, duration_ns: Option<u64>) {
        self.notes = Notes::new(self.notes.tape, duration_ns);
        self.notes.reconnects_before = self.session.reconnects();
    }
}

async fn prefill<S: Session>(
    session: &mut S,
    notes: &mut Notes,
    window: &Window,
    place: usize,
    lanes: usize,
) {
    let mut now = clock_ns();
    for key in (place..notes.tape.prefill_count).step_by(lanes) {
        if now >= window.end_ns.load(Relaxed) {
            break;
        }
        let op = notes.tape.prefill(key);
        now = play_one(session, notes, &op, window, None).await;
    }
    (notes.sent_ns, notes.ended_ns) = (now, now);
}

async fn closed<S: Session>(
    session: &mut S,
    notes: &mut Notes,
    window: &Window,
    operations: &[Operation],
    limit: u64,
) {
    let mut now = clock_ns();
    let mut left = limit;
    for op in operations.iter().cycle() {
        if left == 0 || now >= window.end_ns.load(Relaxed) {
            break;
        }
        left -= 1;
        now = play_one(session, notes, op, window, None).await;
    }
    (notes.sent_ns, notes.ended_ns) = (now, now);
}

async fn opened<S: Session>(
    session: &mut S,
    notes: &mut Notes,
    window: &Window,
    operations: &[Operation],
    limit: u64,
) {
    let tape = notes.tape;
    let times = tape.times.as_deref().unwrap_or_default();
    let due =
        |pass: u64, op: &Operation| window.start_ns + pass * tape.period_ns + times[op.number];
    let count = operations.len() as u64;
    let mut now = 0;
    let mut n = 0;
    let at = |n: u64| {
        (&operations[(n % count) as usize], due(n / count, &operations[(n % count) as usize]))
    };
    while n < limit && count > 0 {
        let (op, due_ns) = at(n);
        if due_ns >= window.end_ns.load(Relaxed)
            || !window.wait_until(due_ns)
            || clock_ns() >= window.drain_ns()
        {
            break;
        }
        // The call before took until after this one was due.
        notes.bound += u64::from(now > due_ns);
        window.peak.fetch_max(window.in_flight.fetch_add(1, Relaxed) + 1, Relaxed);
        now = play_one(session, notes, op, window, Some(due_ns)).await;
        window.in_flight.fetch_sub(1, Relaxed);
        n += 1;
    }
    (notes.sent_ns, notes.ended_ns) = (now.max(window.start_ns), now.max(window.start_ns));
    // What was due in the window and will not be sent waited at least until now.
    let left_at = clock_ns();
    let end_ns = window.end_ns.load(Relaxed).min(left_at);
    while n < limit && count > 0 {
        let (op, due_ns) = at(n);
        if due_ns >= end_ns {
            break;
        }
        notes.unsent += 1;
        notes.tally(op).response.saturating_record((left_at - due_ns).max(1));
        n += 1;
    }
}

/// Operations without a reply are ended by a command that has one.
async fn end_quiet<S: Session>(session: &mut S, notes: &mut Notes) {
    if notes.watch.done.load(Relaxed) + notes.watch.failed.load(Relaxed) == 0 {
        return;
    }
    notes.watch.called_ns.store(clock_ns(), Relaxed);
    match session.barrier().await {
        Ok(0) => {}
        Ok(answered) => (notes.barriers, notes.ended_ns) = (answered, clock_ns()),
        Err(_) => eprintln!("no answer after the last operations without one"),
    }
    notes.watch.called_ns.store(0, Relaxed);
}
