//! One thread of the store's client: it plays a part of the tape in a window.

use std::sync::atomic::Ordering;

use cachemark_storage::{Arithmetic, Mode, Outcome, Store};
use cachemark_tape::{Op, Tape, Verb};

use crate::connection::verification::verify_value;
use crate::event_loop::SharedState;
use crate::io_traits::Clock;
use crate::operation::{Failure, Pending};
use crate::player::WorkSlice;
use crate::record::{Metrics, Recorder, Window};
use crate::routing::TapeView;
use crate::transport::{Monotonic, wait_until};

/// Progress is reported, and the stop flag checked, after this many operations.
const REPORT_EVERY_OPS: u64 = 256;

/// One thread of the client.
pub(super) struct Caller<'a> {
    store: &'a Store,
    pub(super) tape: &'a Tape,
    view: TapeView<'a>,
    pub(super) work_slice: WorkSlice,
    pub(super) window: Window,
    pub(super) recorder: Recorder,
    /// The same instant on the wall clock, which the store uses, and on the monotonic clock.
    epoch: (u64, u64),
    pub(super) sent_ns: u64,
    pub(super) last_ns: u64,
    /// Slices: when the lead-in ends, and after it the first half of the counted part; `u64::MAX`: no part follows.
    pub(super) next_part_ns: u64,
    pub(super) middle_ns: u64,
    /// When the first half ended, and how many operations were counted by then.
    pub(super) half: Option<(u64, u64)>,
}

impl<'a> Caller<'a> {
    pub(super) fn new(
        store: &'a Store,
        tape: &'a Tape,
        work_slice: WorkSlice,
        window: Window,
    ) -> Caller<'a> {
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

    pub(super) fn play(mut self, shared: &SharedState) -> Caller<'a> {
        self.play_window(shared);
        self
    }

    pub(super) fn play_window(&mut self, shared: &SharedState) {
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
pub(super) fn unix_ns() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn count_found(pending: &mut Pending, found: bool) {
    pending.counts.hits += u32::from(found);
    pending.counts.misses += u32::from(!found);
}
