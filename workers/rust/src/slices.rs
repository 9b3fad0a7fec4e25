//! Slices: lanes that stay ready in their threads, and play on for a short time at each request.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use nix::sys::resource::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lane::{Task, Turn};
use crate::lane_record::Sums;
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
    /// Why the slice cannot be played.
    pub fn refusal(&self) -> Option<&'static str> {
        (self.lead_in_us > self.length_us).then_some("a slice whose lead-in is not a part of it")
    }
}

/// Lanes that wait for their next slice, each in its thread.
pub struct Slices {
    /// The senders to the lanes' threads, which end when these are dropped.
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

    /// Ask the lanes to play a slice from an instant on.
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

    /// The result of a slice; adds it to the totals.
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
