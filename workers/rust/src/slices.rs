//! Slices: lanes that stay ready in their threads, and play on for a short time when they are asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::Sender;

use nix::sys::resource::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lane::{COUNTED, LEAD_IN, LaneRecord, Task};
use crate::player::{Totals, usage};
use crate::watch::Watch;
use crate::window::Window;

#[derive(Deserialize)]
pub struct Slice {
    pub length_us: u64,
    #[serde(default)]
    pub lead_in_us: u64,
    #[serde(default)]
    pub start_unix_ns: u64,
}

impl Slice {
    /// Why it cannot be played.
    pub fn refusal(&self) -> Option<&'static str> {
        (self.lead_in_us > self.length_us).then_some("a slice whose lead-in is not a part of it")
    }
}

/// A slice, as each lane is asked for it.
#[derive(Clone)]
pub struct Turn {
    pub task: Task,
    /// When the lead-in ends; `u64::MAX` if all of the slice is lead-in.
    pub count_from_ns: u64,
    /// Closed loop: the middle of the counted part.
    pub middle_ns: u64,
    pub sums: Arc<Sums>,
}

/// What a lane knows of the slice that is going on. In a run all is counted.
#[derive(Clone, Copy)]
pub struct LaneSlice {
    /// The lead-in is over.
    pub counting: bool,
    /// When the lead-in ends, and after it the first half of the counted part; `u64::MAX`: no part follows.
    pub next_part_ns: u64,
    pub middle_ns: u64,
    /// When the first half ended, and how many operations the slice had by then.
    pub half: Option<(u64, u64)>,
    /// The begin of the counted part, and what was played before: operations that succeeded, and that failed.
    pub counted_since_ns: u64,
    pub lead_in: (u64, u64),
    /// The client has no server: its calls wait for nothing but a CPU.
    pub in_process: bool,
}

impl LaneSlice {
    pub fn of_run(in_process: bool) -> LaneSlice {
        LaneSlice {
            counting: true,
            next_part_ns: u64::MAX,
            middle_ns: u64::MAX,
            half: None,
            counted_since_ns: 0,
            lead_in: (0, 0),
            in_process,
        }
    }
}

impl LaneRecord {
    /// The lead-in of a slice begins.
    pub fn begin_lead_in(&mut self, count_from_ns: u64, middle_ns: u64) {
        self.section = LEAD_IN;
        if let Some(groups) = &mut self.groups {
            groups.cut();
        }
        self.watch.done.store(0, Relaxed);
        self.watch.failed.store(0, Relaxed);
        let next_part_ns = count_from_ns;
        self.slice =
            LaneSlice { counting: false, next_part_ns, middle_ns, half: None, ..self.slice };
    }

    /// The lead-in is over.
    #[cold]
    pub fn begin_counting(&mut self, since_ns: u64) {
        self.section = COUNTED;
        self.slice = LaneSlice {
            counting: true,
            next_part_ns: self.slice.middle_ns,
            counted_since_ns: since_ns,
            lead_in: (self.watch.done.load(Relaxed), self.watch.failed.load(Relaxed)),
            ..self.slice
        };
    }

    /// An operation has ended, and with it the lead-in or the first half of the counted part.
    #[cold]
    pub fn end_part(&mut self, now_ns: u64) {
        let LaneSlice { counting, in_process, next_part_ns, .. } = self.slice;
        if counting {
            let played = self.watch.done.load(Relaxed) + self.watch.failed.load(Relaxed);
            self.slice.half = Some((now_ns, played));
            self.slice.next_part_ns = u64::MAX;
        } else {
            self.begin_counting(if in_process { next_part_ns } else { now_ns });
        }
    }
}

/// What the lanes add up when a slice has ended.
#[derive(Default)]
pub struct Sums {
    playing: AtomicU64,
    /// Lanes that have operations, and those of them that made one.
    callers: AtomicU64,
    played: AtomicU64,
    ops: AtomicU64,
    errors: AtomicU64,
    lead_in_ops: AtomicU64,
    elapsed_ns: AtomicU64,
    half_ops: AtomicU64,
    half_ns: AtomicU64,
}

impl Sums {
    /// Add what a lane played; true for the last of them.
    pub fn add(&self, notes: &LaneRecord, has_operations: bool, end_ns: u64) -> bool {
        let (ok, failed) = (notes.watch.done.load(Relaxed), notes.watch.failed.load(Relaxed));
        let slice = &notes.slice;
        let (lead_in_ok, lead_in_failed) =
            if slice.counting { slice.lead_in } else { (ok, failed) };
        self.lead_in_ops.fetch_add(lead_in_ok + lead_in_failed, Relaxed);
        self.ops.fetch_add(ok - lead_in_ok, Relaxed);
        self.errors.fetch_add(failed - lead_in_failed, Relaxed);
        self.callers.fetch_add(has_operations.into(), Relaxed);
        self.played.fetch_add((ok + failed > 0).into(), Relaxed);
        if has_operations {
            let since_ns = if slice.counting { slice.counted_since_ns } else { slice.next_part_ns };
            // Not less than to the slice's end, so that the time without a CPU belongs to it.
            let ended_ns = if ok + failed > 0 { notes.ended_ns } else { 0 };
            let until_ns = ended_ns.max(end_ns);
            self.elapsed_ns.fetch_add(until_ns.saturating_sub(since_ns), Relaxed);
            // Without a completion after the middle the first half lasts until then.
            let (half_end_ns, half_played) =
                slice.half.unwrap_or((slice.middle_ns.min(end_ns), ok + failed));
            self.half_ns.fetch_add(half_end_ns.saturating_sub(since_ns), Relaxed);
            self.half_ops.fetch_add(half_played - lead_in_ok - lead_in_failed, Relaxed);
        }
        self.playing.fetch_sub(1, SeqCst) == 1
    }
}

/// Lanes that wait for their next slice, each in its thread.
pub struct Slices {
    /// Of the lanes' threads, which end with it.
    pub turns: Vec<Sender<Turn>>,
    pub watches: Vec<Arc<Watch>>,
    pub open_loop: bool,
    pub quiet: bool,
    pub timeout_ns: u64,
    pub totals: Totals,
    /// The tape's time at the end of the last slice.
    tape_ns: u64,
}

impl Slices {
    pub fn new(open_loop: bool, quiet: bool, timeout_ns: u64) -> Slices {
        let (turns, watches, totals) = (Vec::new(), Vec::new(), Totals::default());
        Slices { turns, watches, open_loop, quiet, timeout_ns, totals, tape_ns: 0 }
    }

    /// Ask the lanes for a slice that begins then.
    pub fn begin(&self, slice: &Slice, start_ns: u64) -> Turn {
        let (length_ns, lead_in_ns) = (slice.length_us * 1000, slice.lead_in_us * 1000);
        let mut window = Window::new(start_ns, Some(length_ns), self.timeout_ns);
        window.tape_start_ns = start_ns - self.tape_ns;
        let sums = Sums { playing: (self.turns.len() as u64).into(), ..Sums::default() };
        let turn = Turn {
            task: Task {
                window: Arc::new(window),
                prefill: false,
                limit: u64::MAX,
                quiet: self.quiet,
            },
            count_from_ns: if lead_in_ns < length_ns { start_ns + lead_in_ns } else { u64::MAX },
            middle_ns: if self.open_loop {
                u64::MAX
            } else {
                start_ns + lead_in_ns.midpoint(length_ns)
            },
            sums: Arc::new(sums),
        };
        for lane in &self.turns {
            let _ = lane.send(turn.clone());
        }
        turn
    }

    /// What a slice came to, which the totals get too.
    pub fn end(&mut self, slice: &Slice, turn: &Turn, before: Usage) -> Value {
        let (window, sums) = (&turn.task.window, &turn.sums);
        let callers = sums.callers.load(Relaxed);
        let mut elapsed_ns = sums.elapsed_ns.load(Relaxed).checked_div(callers).unwrap_or(0);
        let mut half = (sums.half_ops.load(Relaxed), sums.half_ns.load(Relaxed));
        half.1 = half.1.checked_div(callers).unwrap_or(0);
        let mut peak = sums.played.load(Relaxed);
        if self.open_loop {
            half = (0, 0);
            let length_ns = window.end_ns.load(Relaxed).saturating_sub(window.start_ns);
            self.tape_ns += length_ns;
            elapsed_ns = length_ns.saturating_sub(slice.lead_in_us * 1000);
            peak = window.peak.load(Relaxed);
        }
        self.totals.elapsed_ns += elapsed_ns;
        self.totals.send_elapsed_ns += elapsed_ns;
        self.totals.max_in_flight = self.totals.max_in_flight.max(peak);
        self.totals.add_cpu(before, usage());
        json!({
            "type": "slice_done", "ops": sums.ops.load(Relaxed), "errors": sums.errors.load(Relaxed),
            "lead_in_ops": sums.lead_in_ops.load(Relaxed), "elapsed_ns": elapsed_ns,
            "half_ops": half.0, "half_ns": half.1,
        })
    }
}
