//! Slices of the store's client: short parts of the tape, in turn with other clients.

use std::io;
use std::sync::atomic::Ordering;

use super::caller::Caller;
use crate::client::SlicePlayer;
use crate::event_loop::SharedState;
use crate::player::SliceResult;
use crate::record::{Metrics, Recorder, Window};

/// A caller in a thread that plays slices.
pub(super) struct CallerSlices<'a> {
    pub(super) caller: Caller<'a>,
    pub(super) shared: &'a SharedState,
}

impl SlicePlayer for CallerSlices<'_> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn play(&mut self, window: Window, lead_in_ns: u64) -> io::Result<SliceResult> {
        Ok(self.caller.play_slice(window, lead_in_ns, self.shared))
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Caller<'_> {
    /// The first completion after a slice's lead-in is its last one; so is that after the first half.
    #[cold]
    pub(super) fn end_part(&mut self) {
        if self.recorder.counted_from_ns == 0 {
            let (ok, failed) = self.recorder.metrics.ended();
            (self.half, self.next_part_ns) = (Some((self.last_ns, ok + failed)), u64::MAX);
        } else {
            (self.recorder.counted_from_ns, self.next_part_ns) = (0, self.middle_ns);
        }
    }

    fn ended(&self) -> (u64, u64, u64) {
        let (ok, failed) = self.recorder.metrics.ended();
        let lead_in = self.recorder.lead_in.as_ref().map_or((0, 0), |each| each.ended());
        (ok, failed, lead_in.0 + lead_in.1)
    }

    fn play_slice(&mut self, window: Window, lead_in_ns: u64, shared: &SharedState) -> SliceResult {
        let before = self.ended();
        let all = lead_in_ns >= window.end_ns - window.start_ns;
        (self.window, self.last_ns) = (window, window.start_ns);
        self.recorder.cut_group();
        self.recorder.counted_from_ns = if lead_in_ns == 0 { 0 } else { u64::MAX };
        let counted_from_ns = window.start_ns + lead_in_ns;
        self.middle_ns = counted_from_ns.midpoint(window.end_ns);
        self.next_part_ns = match lead_in_ns {
            _ if all => u64::MAX,
            0 => self.middle_ns,
            _ => counted_from_ns,
        };
        self.half = None;
        self.play_window(shared);
        let now = self.ended();
        // It waits for nothing but a CPU, so its counted part begins with an instant and ends not before the slice.
        let stopped = shared.stop.load(Ordering::Relaxed);
        let ended_ns = if stopped { self.last_ns } else { self.last_ns.max(window.end_ns) };
        let elapsed_ns = if all { 0 } else { ended_ns.saturating_sub(counted_from_ns) };
        // Without a completion after the middle, the first half lasts until then.
        let (half_end_ns, half_ended) =
            self.half.unwrap_or((self.middle_ns.min(ended_ns), now.0 + now.1));
        let plays = !self.work_slice.exhausted(self.tape);
        SliceResult {
            ops: now.0 - before.0,
            errors: now.1 - before.1,
            lead_in_ops: now.2 - before.2,
            elapsed_ns: if plays { elapsed_ns } else { 0 },
            callers: u64::from(plays),
            half_ops: half_ended - before.0 - before.1,
            half_ns: if plays && !all { half_end_ns.saturating_sub(counted_from_ns) } else { 0 },
        }
    }

    pub(super) fn into_slice_metrics(self) -> (Metrics, Metrics) {
        let Recorder { mut metrics, lead_in, .. } = self.recorder;
        let mut lead_in = lead_in.map_or_else(|| Metrics::empty(0), |each| *each);
        metrics.move_attempts(&mut lead_in);
        (metrics, lead_in)
    }
}
