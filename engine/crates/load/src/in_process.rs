//! Plays a tape on the item store itself, without a network: in this process, or in memory that
//! processes share. Threads call the store in a closed loop. Each result is checked like a server's
//! reply.

mod caller;
mod slices;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cachemark_storage::Store;
use cachemark_tape::Tape;

use crate::client::{
    PhaseLimits, PrepareError, RunControl, RunResult, SliceDriver, SlicePlayer, cpu_times,
    play_slices, window_of_phase, work_slice_of,
};
use crate::record::{Metrics, Sections};
use caller::{Caller, unix_ns};
use slices::CallerSlices;

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

    /// The memory of the store's items and its hash table now. This locks each region in turn.
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
        let players = callers.iter_mut().map(|each| each as &mut dyn SlicePlayer).collect();
        let totals = play_slices(players, 0, control, driver)?;
        let parts = callers.into_iter().map(|each| each.caller.into_slice_metrics()).collect();
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
