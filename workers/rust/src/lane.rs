//! The measured loops: one lane is one thread with its session and its executor.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::runtime::{Builder, Runtime};

use crate::client::Session;
use crate::lane_record::{LEAD_IN, LaneRecord, Sums};
use crate::prepare::Prepare;
use crate::renewal::Renewal;
use crate::tape::{Operation, Tape};
use crate::timeline::SECTIONS;
use crate::verify::{ReplyStatus, Verified};
use crate::watch::add_one;
use crate::window::{Window, clock_ns};

/// The task of each lane in a run.
#[derive(Clone)]
pub struct Task {
    pub window: Arc<Window>,
    pub prefill: bool,
    pub limit: u64,
    /// It ends with a command that has a reply.
    pub quiet: bool,
}

/// A slice, in the request to each lane.
#[derive(Clone)]
pub struct Turn {
    pub task: Task,
    /// The end of the lead-in; `u64::MAX` if the whole slice is lead-in.
    pub count_from_ns: u64,
    /// Closed loop: the middle of the counted part.
    pub middle_ns: u64,
    pub sums: Arc<Sums>,
}

pub struct Lane<S: Session> {
    pub session: S,
    renewal: Option<Renewal<S>>,
    runtime: Runtime,
    operations: Vec<Operation>,
    place: usize,
    lanes: usize,
    pub notes: LaneRecord,
}

/// Make sleeps of this thread end on time.
pub fn punctual_sleeps() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Play one operation; returns its end. `due_ns` is for an open loop, the only place where calls may be given up.
async fn play_one<S: Session, const GIVES_UP: bool>(
    session: &mut S,
    notes: &mut LaneRecord,
    op: &Operation,
    window: &Window,
    due_ns: Option<u64>,
) -> u64 {
    let began = clock_ns();
    notes.watch.called_ns.store(began, Relaxed);
    let result = match &mut notes.giving_up {
        Some(giving_up) if GIVES_UP => giving_up.call(session, op, began).await,
        _ => Some(session.call(op).await),
    };
    let now = clock_ns();
    notes.watch.called_ns.store(0, Relaxed);
    let mut verified = match &result {
        Some(Ok(answer)) => S::verify(notes.tape, op, answer),
        Some(Err(error)) => Verified::of(S::failure(op, error)),
        None => Verified::of(ReplyStatus::Timeout),
    };
    if now - began >= window.timeout_ns {
        verified.status = ReplyStatus::Timeout;
    }
    if now >= notes.timeline.end_ns {
        notes.section = notes.timeline.advance(now);
    }
    let timed = notes.recorder(op).note(op, &verified, now - began);
    if let Some(due_ns) = due_ns {
        if notes.slice.counting {
            notes.lag.saturating_record((began - due_ns).max(1));
        }
        if timed {
            notes.recorder(op).response.saturating_record((now - due_ns).max(1));
        }
        if let Some(calls) = &notes.calls {
            calls.note(op, &verified, began, now);
        }
    }
    if let Some(groups) = &mut notes.groups {
        let ok = notes.slice.counting && verified.status < ReplyStatus::WrongValue;
        groups.note(ok, began, now);
    }
    if verified.status < ReplyStatus::WrongValue {
        notes.timeline.note(now - due_ns.unwrap_or(began));
        add_one(&notes.watch.done);
    } else {
        add_one(&notes.watch.failed);
        if verified.status != ReplyStatus::WrongValue {
            notes.tape.generations.accept_any(); // if it was a write, it may still arrive
        }
    }
    now
}

impl<S: Session> Lane<S> {
    /// Connect. The error names the server and the problem.
    pub fn open(
        setup: &Prepare,
        shared: S::Shared,
        tape: &'static Tape,
        t: usize,
    ) -> Result<Lane<S>, String> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let renewal = Renewal::of(setup, &shared);
        let session = runtime.block_on(S::open(setup, shared))?;
        let (place, lanes) = (setup.segment.0 * setup.threads + t, setup.segment.1 * setup.threads);
        tape.generations.judge_if(setup.plays_as_meant(tape));
        Ok(Lane {
            session,
            renewal,
            runtime,
            operations: tape.lane(place, lanes),
            place,
            lanes,
            notes: LaneRecord::new(tape, 1, None, setup.servers.is_empty()),
        })
    }

    /// Play a phase, in a thread of this lane's own.
    pub fn play(mut self, task: &Task) -> Lane<S> {
        punctual_sleeps();
        self.play_window(task);
        self
    }

    /// Play on where the last slice ended; true for the last lane that is done.
    pub fn play_slice(&mut self, turn: &Turn) -> bool {
        self.notes.begin_lead_in(turn.count_from_ns, turn.middle_ns);
        self.play_window(&turn.task);
        let end_ns = turn.task.window.end_ns.load(Relaxed);
        turn.sums.add(&self.notes, !self.operations.is_empty(), end_ns)
    }

    /// Wait for the window's start, and play until it ends.
    fn play_window(&mut self, task: &Task) {
        let Lane { session, renewal, runtime, operations, place, lanes, notes } = self;
        let window = &*task.window;
        if window.wait_until(window.start_ns) {
            runtime.block_on(async {
                if task.prefill {
                    prefill(session, notes, window, *place, *lanes).await;
                } else if notes.tape.times.is_some() && notes.giving_up.is_some() {
                    open_loop::<S, true>(session, renewal, notes, window, operations, task.limit)
                        .await;
                } else if notes.tape.times.is_some() {
                    open_loop::<S, false>(session, renewal, notes, window, operations, task.limit)
                        .await;
                } else {
                    closed_loop(session, renewal, notes, window, operations, task.limit).await;
                }
                if task.quiet {
                    end_quiet(session, notes).await;
                }
            });
        }
    }

    /// Discard the last run; the next one has this length.
    pub fn reset(&mut self, duration_ns: Option<u64>) {
        let sections = if duration_ns.is_some() { SECTIONS } else { 1 };
        self.renew_notes(sections, duration_ns);
    }

    /// Discard the last run; slices come next.
    pub fn reset_for_slices(&mut self) {
        self.renew_notes(LEAD_IN + 1, None);
    }

    fn renew_notes(&mut self, sections: usize, duration_ns: Option<u64>) {
        let LaneRecord { tape, slice, .. } = &self.notes;
        self.notes = LaneRecord::new(tape, sections, duration_ns, slice.in_process);
        self.notes.reconnects_before = self.session.reconnects();
    }
}

async fn prefill<S: Session>(
    session: &mut S,
    notes: &mut LaneRecord,
    window: &Window,
    place: usize,
    lanes: usize,
) {
    notes.groups = None;
    let mut now = clock_ns();
    for key in (place..notes.tape.prefill_count).step_by(lanes) {
        if now >= window.end_ns.load(Relaxed) {
            break;
        }
        let op = notes.tape.prefill(key);
        now = play_one::<S, false>(session, notes, &op, window, None).await;
    }
    (notes.sent_ns, notes.ended_ns) = (now, now);
}

async fn closed_loop<S: Session>(
    session: &mut S,
    renewal: &mut Option<Renewal<S>>,
    notes: &mut LaneRecord,
    window: &Window,
    operations: &[Operation],
    limit: u64,
) {
    let mut now = clock_ns();
    if now >= notes.slice.next_part_ns && !operations.is_empty() {
        // It had no CPU until now.
        notes.begin_counting(notes.slice.next_part_ns);
    }
    let mut left = if operations.is_empty() { 0 } else { limit };
    let mut at = notes.next as usize % operations.len().max(1);
    while left > 0 && now < window.end_ns.load(Relaxed) {
        left -= 1;
        if let Some(renewal) = renewal {
            renewal.before_call(session, notes).await;
        }
        now = play_one::<S, false>(session, notes, &operations[at], window, None).await;
        at = if at + 1 < operations.len() { at + 1 } else { 0 };
        if now >= notes.slice.next_part_ns {
            notes.end_part(now);
        }
    }
    notes.next = at as u64;
    (notes.sent_ns, notes.ended_ns) = (now, now);
}

async fn open_loop<S: Session, const GIVES_UP: bool>(
    session: &mut S,
    renewal: &mut Option<Renewal<S>>,
    notes: &mut LaneRecord,
    window: &Window,
    operations: &[Operation],
    limit: u64,
) {
    let tape = notes.tape;
    let times = tape.times.as_deref().unwrap_or_default();
    let due =
        |pass: u64, op: &Operation| window.tape_start_ns + pass * tape.period_ns + times[op.number];
    let count = operations.len() as u64;
    let mut now = 0;
    let mut n = notes.next;
    let at = |n: u64| {
        (&operations[(n % count) as usize], due(n / count, &operations[(n % count) as usize]))
    };
    while n < limit && count > 0 {
        let (op, due_ns) = at(n);
        if let Some(renewal) = renewal {
            renewal.before_call(session, notes).await;
        }
        if due_ns >= window.end_ns.load(Relaxed)
            || !window.wait_until(due_ns)
            || clock_ns() >= window.drain_ns()
        {
            break;
        }
        if due_ns >= notes.slice.next_part_ns {
            notes.begin_counting(due_ns);
        }
        // The call before took until after this one was due.
        notes.queued += u64::from(notes.slice.counting && now > due_ns);
        window.peak.fetch_max(window.in_flight.fetch_add(1, Relaxed) + 1, Relaxed);
        now = play_one::<S, GIVES_UP>(session, notes, op, window, Some(due_ns)).await;
        window.in_flight.fetch_sub(1, Relaxed);
        n += 1;
    }
    (notes.sent_ns, notes.ended_ns) = (now.max(window.start_ns), now.max(window.start_ns));
    // Operations that were due in the window and will not be sent waited at least until now.
    let left_at = clock_ns();
    let end_ns = window.end_ns.load(Relaxed).min(left_at);
    while n < limit && count > 0 {
        let (op, due_ns) = at(n);
        if due_ns >= end_ns {
            break;
        }
        if due_ns >= notes.slice.next_part_ns {
            notes.begin_counting(due_ns);
        }
        notes.unsent += u64::from(notes.slice.counting);
        notes.recorder(op).response.saturating_record((left_at - due_ns).max(1));
        n += 1;
    }
    notes.next = n;
}

/// Send a command with a reply after operations without one.
async fn end_quiet<S: Session>(session: &mut S, notes: &mut LaneRecord) {
    if notes.watch.done.load(Relaxed) + notes.watch.failed.load(Relaxed) == 0 {
        return;
    }
    notes.watch.called_ns.store(clock_ns(), Relaxed);
    match session.barrier().await {
        Ok(0) => {}
        Ok(answered) => {
            notes.barriers += answered;
            notes.ended_ns = clock_ns();
        }
        Err(_) => eprintln!("no answer after the last operations without one"),
    }
    notes.watch.called_ns.store(0, Relaxed);
}
