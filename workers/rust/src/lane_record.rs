//! A lane's records in a run or a slice, and the sums of a slice's lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use hdrhistogram::Histogram;

use crate::call_log::CallLog;
use crate::give_up::GivingUp;
use crate::groups::Groups;
use crate::histogram::histogram;
use crate::recorder::Recorder;
use crate::tape::{KINDS, Operation, Tape, Verb};
use crate::timeline::Timeline;
use crate::watch::Watch;

/// A lane's records in a run.
pub struct LaneRecord {
    pub tape: &'static Tape,
    /// By section of the window and kind; a window without sections has one section.
    pub recorders: Vec<Vec<Option<Recorder>>>,
    pub section: usize,
    pub timeline: Timeline,
    pub lag: Histogram<u64>,
    pub groups: Option<Groups>,
    /// This and the next are None unless the run asked for them.
    pub calls: Option<Arc<CallLog>>,
    pub giving_up: Option<GivingUp>,
    pub watch: Arc<Watch>,
    pub sent_ns: u64,
    pub ended_ns: u64,
    pub queued: u64,
    pub unsent: u64,
    pub barriers: u64,
    /// Reconnects of earlier sessions, and of this session at its begin.
    pub reconnects: u64,
    pub reconnects_before: u64,
    pub renewed: u64,
    pub failed_connects: u64,
    /// Number of operations played since the tape's start.
    pub next: u64,
    pub slice: LaneSlice,
}

/// The sections of the recorders that slices use.
pub const COUNTED: usize = 0;
pub const LEAD_IN: usize = 1;

impl LaneRecord {
    pub fn new(
        tape: &'static Tape,
        sections: usize,
        duration_ns: Option<u64>,
        in_process: bool,
    ) -> LaneRecord {
        let prefill = 2 * usize::from(Verb::SET.0);
        let played = |kind| kind == prefill || tape.kinds.contains(&kind);
        let recorders = || (0..KINDS).map(|kind| played(kind).then(Recorder::new)).collect();
        LaneRecord {
            tape,
            recorders: (0..sections).map(|_| recorders()).collect(),
            section: 0,
            timeline: Timeline::new(duration_ns),
            lag: histogram(),
            groups: Groups::of(tape),
            calls: None,
            giving_up: None,
            watch: Arc::default(),
            sent_ns: 0,
            ended_ns: 0,
            queued: 0,
            unsent: 0,
            barriers: 0,
            reconnects: 0,
            reconnects_before: 0,
            renewed: 0,
            failed_connects: 0,
            next: 0,
            slice: LaneSlice::of_run(in_process),
        }
    }

    pub fn recorder(&mut self, op: &Operation) -> &mut Recorder {
        self.recorders[self.section][op.kind].as_mut().expect("a kind of the tape")
    }

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

    /// With an operation, the lead-in or the first half of the counted part has ended.
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

/// A lane's state in the current slice. In a run, everything counts.
#[derive(Clone, Copy)]
pub struct LaneSlice {
    /// The lead-in is over.
    pub counting: bool,
    /// The end of the lead-in, then of the first half of the counted part; `u64::MAX`: no part follows.
    pub next_part_ns: u64,
    pub middle_ns: u64,
    /// The end of the first half, and the slice's operations by then.
    pub half: Option<(u64, u64)>,
    /// The begin of the counted part; operations before it that succeeded, and that failed.
    pub counted_since_ns: u64,
    pub lead_in: (u64, u64),
    /// The client has no server: its calls wait for a CPU only.
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

/// The sums of all lanes when a slice has ended.
#[derive(Default)]
pub struct Sums {
    pub playing: AtomicU64,
    /// Lanes with operations, and lanes that made one.
    pub callers: AtomicU64,
    pub played: AtomicU64,
    pub ops: AtomicU64,
    pub errors: AtomicU64,
    pub lead_in_ops: AtomicU64,
    pub elapsed_ns: AtomicU64,
    pub half_ops: AtomicU64,
    pub half_ns: AtomicU64,
}

impl Sums {
    /// Add a lane's results; true for the last lane.
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
            // At least to the slice's end, to include time without a CPU.
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
