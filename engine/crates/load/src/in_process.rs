//! Plays a tape on the item store itself, without a network: in this process, or in memory that
//! processes share. Threads call the store in a closed loop. Each result is checked like a server's
//! reply.

mod slices;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use cachemark_storage::{Arithmetic, Mode, Outcome, Store};
use cachemark_tape::{Op, Tape, Verb};

use crate::client::{
    PhaseLimits, PrepareError, RunControl, RunResult, SliceDriver, cpu_times, play_slices,
    window_of_phase, work_slice_of,
};
use crate::connection::verification::verify_value;
use crate::event_loop::SharedState;
use crate::io_traits::Clock;
use crate::operation::{Failure, Pending};
use crate::player::WorkSlice;
use crate::record::{Metrics, Recorder, Sections, Window};
use crate::routing::TapeView;
use crate::transport::{Monotonic, wait_until};
use slices::CallerSlices;

/// Progress is reported, and the stop flag checked, after this many operations.
const REPORT_EVERY_OPS: u64 = 256;

/// A client of a store.
pub struct InProcess {
    store: Arc<Store>,
    tape: Arc<Tape>,
    threads: usize,
    segment: (u64, u64),
}

impl InProcess {
    /// A client with a number of threads that plays part `segment.0` of `segment.1` of the tape.
    pub fn prepare(
        store: Arc<Store>,
        tape: Arc<Tape>,
        threads: usize,
        segment: (u64, u64),
    ) -> Result<InProcess, PrepareError> {
        if threads == 0 || segment.0 >= segment.1 {
            let text = format!(
                "segment {} of {} does not exist, or there are no threads",
                segment.0, segment.1
            );
            return Err(PrepareError::Usage(text));
        }
        if tape.is_timed() {
            let text = "the in-process store supports only a closed loop without think times";
            return Err(PrepareError::Unsupported(text.to_owned()));
        }
        if let Some(op) = (0..tape.op_count()).map(|j| tape.op(j)).find(|op| op.noreply) {
            let kind = op.verb.kind(true);
            let text = format!("the in-process store has no {kind}: a call always returns");
            return Err(PrepareError::Unsupported(text));
        }
        tape.accept_any_generation(); // without a server there is none that could lie
        Ok(InProcess { store, tape, threads, segment })
    }

    /// What the store's items and its hash table take now. This locks each region in turn.
    pub fn store_bytes(&self) -> u64 {
        let usage = self.store.usage((unix_ns() / 1_000_000_000) as u32);
        usage.bytes + usage.table_bytes
    }

    /// Play slices of the tape from its start on, whenever the driver says so, until it ends them.
    pub fn play_slices(
        &mut self,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<RunResult> {
        let limits = PhaseLimits::Play { start_in_ns: 0, ops: None, duration_ns: None };
        let window = window_of_phase(limits, Duration::ZERO, 0);
        let mut callers: Vec<_> = (0..self.threads)
            .map(|number| {
                let work = work_slice_of(limits, (self.threads, self.segment), number, &self.tape);
                let mut caller = Caller::new(&self.store, &self.tape, work, window);
                caller.recorder.lead_in = Some(Box::new(Metrics::new(&self.tape, window.start_ns)));
                CallerSlices { caller, shared: &control.shared }
            })
            .collect();
        let totals = play_slices(&mut callers, 0, control, driver)?;
        let parts = callers.into_iter().map(|each| each.caller.into_slice_metrics());
        Ok(RunResult::of_slices(parts, &totals))
    }

    /// Play one phase on all threads. Returns when it is over.
    pub fn run(&mut self, limits: PhaseLimits, control: &RunControl) -> RunResult {
        let window = window_of_phase(limits, Duration::ZERO, self.threads);
        let before = cpu_times();
        let shared = &*control.shared;
        let (store, tape) = (&*self.store, &*self.tape);
        let callers = thread::scope(|scope| {
            let work_slice =
                |number| work_slice_of(limits, (self.threads, self.segment), number, tape);
            let start = |number| {
                let caller = Caller::new(store, tape, work_slice(number), window);
                scope.spawn(move || caller.play(shared))
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Vec<Caller<'_>>>()
        });
        let after = cpu_times();
        let mut result = RunResult {
            metrics: Metrics::new(tape, window.start_ns),
            elapsed_ns: 0,
            send_elapsed_ns: 0,
            cpu_user_ns: after.0 - before.0,
            cpu_system_ns: after.1 - before.1,
            lead_in: None,
            sections: Sections::of(callers.iter().map(|caller| &caller.recorder.metrics)),
            calls: Vec::new(),
        };
        for caller in callers {
            result.metrics.add(&caller.recorder.metrics);
            result.elapsed_ns = result.elapsed_ns.max(caller.last_ns - window.start_ns);
            result.send_elapsed_ns = result.send_elapsed_ns.max(caller.sent_ns - window.start_ns);
        }
        result
    }
}

/// One thread of the client.
struct Caller<'a> {
    store: &'a Store,
    tape: &'a Tape,
    view: TapeView<'a>,
    work_slice: WorkSlice,
    window: Window,
    recorder: Recorder,
    /// The same instant on the wall clock, which the store uses, and on the monotonic clock.
    epoch: (u64, u64),
    sent_ns: u64,
    last_ns: u64,
    /// Slices: when the lead-in ends, and after it the first half of the counted part; `u64::MAX`: no part follows.
    next_part_ns: u64,
    middle_ns: u64,
    /// When the first half ended, and how many operations were counted by then.
    half: Option<(u64, u64)>,
}

impl<'a> Caller<'a> {
    fn new(store: &'a Store, tape: &'a Tape, work_slice: WorkSlice, window: Window) -> Caller<'a> {
        let recorder = Recorder::new(Metrics::of_window(tape, &window));
        let recorder = match work_slice {
            WorkSlice::Lane { .. } => recorder.with_groups(tape, 1),
            WorkSlice::Prefill { .. } => recorder,
        };
        Caller {
            store,
            tape,
            view: TapeView::new(tape, None),
            work_slice,
            window,
            recorder,
            epoch: (unix_ns(), Monotonic.now_ns()),
            sent_ns: window.start_ns,
            last_ns: window.start_ns,
            next_part_ns: u64::MAX,
            middle_ns: u64::MAX,
            half: None,
        }
    }

    fn play(mut self, shared: &SharedState) -> Caller<'a> {
        self.play_window(shared);
        self
    }

    fn play_window(&mut self, shared: &SharedState) {
        wait_until(self.window.start_ns);
        if self.recorder.counted_from_ns != 0 && Monotonic.now_ns() >= self.next_part_ns {
            self.end_part(); // it had no CPU until now
        }
        self.recorder.metrics.max_in_flight = 1;
        let (mut done, mut reported) = (0_u64, (0, 0));
        loop {
            let now_ns = Monotonic.now_ns();
            if done.is_multiple_of(REPORT_EVERY_OPS) {
                reported = self.report_progress(shared, reported);
                if shared.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            if now_ns >= self.window.end_ns {
                break;
            }
            let Some((op, _)) = self.work_slice.take(self.tape) else { break };
            let group = self.recorder.take_group();
            let mut pending = Pending { group, ..Pending::closed_loop(op) };
            self.recorder.sent(&mut pending, now_ns);
            self.sent_ns = now_ns;
            self.call(&mut pending, self.wall_second(now_ns));
            self.last_ns = Monotonic.now_ns();
            self.recorder.answered(&pending, self.last_ns, self.view);
            if self.last_ns >= self.next_part_ns {
                self.end_part();
            }
            done += 1;
        }
        self.report_progress(shared, reported);
    }

    fn wall_second(&self, now_ns: u64) -> u32 {
        ((self.epoch.0 + now_ns.saturating_sub(self.epoch.1)) / 1_000_000_000) as u32
    }

    fn report_progress(&self, shared: &SharedState, reported: (u64, u64)) -> (u64, u64) {
        let now = (self.recorder.metrics.ok(), self.recorder.metrics.failed());
        shared.ok.fetch_add(now.0 - reported.0, Ordering::Relaxed);
        shared.failed.fetch_add(now.1 - reported.1, Ordering::Relaxed);
        now
    }

    fn call(&self, pending: &mut Pending, now_s: u32) {
        let op = pending.op;
        match op.verb {
            Verb::Get | Verb::Gets | Verb::Mget => self.read(pending, None, now_s),
            Verb::Fetch => {
                self.read(pending, None, now_s);
                if pending.counts.misses > 0 {
                    self.write(pending, Mode::Set, op.key, op.length, now_s);
                }
            }
            Verb::Gat => self.read(pending, Some(i64::from(op.exptime_s)), now_s),
            Verb::Set => self.write(pending, Mode::Set, op.key, op.length, now_s),
            Verb::Add => self.write(pending, Mode::Add, op.key, op.length, now_s),
            Verb::Replace => self.write(pending, Mode::Replace, op.key, op.length, now_s),
            Verb::Append => self.write(pending, Mode::Append, op.key, 0, now_s),
            Verb::Prepend => self.write(pending, Mode::Prepend, op.key, 0, now_s),
            Verb::Flush => self.store.flush(0, now_s),
            Verb::Mset => {
                for k in self.view.keys(&op) {
                    self.write(pending, Mode::Set, k, self.tape.value_length(k), now_s);
                }
            }
            Verb::Cas => self.swap(pending, now_s),
            Verb::Incr | Verb::Decr => self.count(pending, now_s),
            Verb::Delete => count_found(pending, self.store.delete(self.tape.key(op.key), now_s)),
            Verb::Touch => {
                let key = self.tape.key(op.key);
                count_found(pending, self.store.touch(key, i64::from(op.exptime_s), now_s));
            }
            // There is no server to ask.
            Verb::Version => {}
        }
    }

    #[inline]
    fn read(&self, pending: &mut Pending, exptime: Option<i64>, now_s: u32) {
        let op: Op = pending.op;
        for k in self.view.keys(&op) {
            self.store.get(self.tape.key(k), exptime, now_s, |item| {
                verify_value(pending, k, item.flags, item.value, self.view);
            });
        }
        pending.counts.misses = u32::from(op.run) - pending.counts.hits;
    }

    #[inline]
    fn write(&self, pending: &mut Pending, mode: Mode, k: u32, length: u32, now_s: u32) {
        let value = self.tape.value_of(k, length, pending.op.generation);
        let exptime = i64::from(pending.op.exptime_s);
        match self.store.store(mode, self.tape.key(k), 0, exptime, value, now_s) {
            Some(Outcome::Stored) => {}
            Some(Outcome::NotStored | Outcome::Exists) => pending.counts.not_stored = 1,
            Some(Outcome::NotFound) => count_found(pending, false),
            None => pending.failure = Some(Failure::Server),
        }
    }

    fn swap(&self, pending: &mut Pending, now_s: u32) {
        let op = pending.op;
        let read = self.store.get(self.tape.key(op.key), None, now_s, |item| {
            verify_value(pending, op.key, item.flags, item.value, self.view);
            item.cas
        });
        match read {
            None => pending.counts.misses = 1,
            Some(cas) => {
                self.write(pending, Mode::Cas(cas), op.key, op.length, now_s);
                // A miss here means that the item was deleted between the read and the store.
                pending.counts.hits -= pending.counts.misses;
            }
        }
    }

    fn count(&self, pending: &mut Pending, now_s: u32) {
        let op = pending.op;
        let up = op.verb == Verb::Incr;
        match self.store.arithmetic(self.tape.key(op.key), op.length.into(), up, now_s) {
            Arithmetic::Number(_) => count_found(pending, true),
            Arithmetic::NotFound => count_found(pending, false),
            Arithmetic::NonNumeric => pending.failure = Some(Failure::Client),
            Arithmetic::Exists | Arithmetic::NoRoom => pending.failure = Some(Failure::Server),
        }
    }
}

/// The wall clock in ns since 1970. No measurement uses it.
#[expect(clippy::disallowed_types, reason = "the store's expiry is in seconds since the epoch")]
fn unix_ns() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn count_found(pending: &mut Pending, found: bool) {
    pending.counts.hits += u32::from(found);
    pending.counts.misses += u32::from(!found);
}
