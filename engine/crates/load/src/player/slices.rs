//! Slices: a player plays its tape in short parts, and pauses between them. The beginning of each, the lead-in, is
//! not counted.

use super::Player;
use super::slice::{Ended, SliceResult, SliceState};
use crate::connection::Wire;
use crate::record::{Metrics, Window};

impl<W: Wire> Player<'_, W> {
    /// Allocate the memory for slices.
    pub fn prepare_slices(&mut self) {
        self.recorder.lead_in = Some(Box::new(Metrics::new(self.tape, self.window.start_ns)));
        self.slice = Some(Box::new(SliceState {
            open_loop: self.tape.is_open_loop(),
            counted_ns: 0,
            lead_in_end_ns: 0,
            end_ns: 0,
            began_ns: vec![0; self.channels.len()],
            last_ns: vec![0; self.channels.len()],
            next_part_ns: vec![u64::MAX; self.channels.len()],
            middle_ns: u64::MAX,
            ended_ops: vec![0; self.channels.len()],
            lead_in_ops: vec![0; self.channels.len()],
            half: vec![(0, 0); self.channels.len()],
            tape_ns: 0,
            before: Ended::default(),
        }));
    }

    /// Begin the next slice. The tape goes on where the last one ended.
    pub fn begin_slice(&mut self, window: Window, lead_in_ns: u64) {
        let before = self.ended();
        self.recorder.cut_group();
        let Some(slice) = &mut self.slice else { return };
        let length_ns = window.end_ns - window.start_ns;
        let whole = lead_in_ns >= length_ns;
        slice.counted_ns = length_ns.saturating_sub(lead_in_ns);
        slice.end_ns = window.end_ns;
        slice.lead_in_end_ns = if whole { u64::MAX } else { window.start_ns + lead_in_ns };
        let began_ns = if lead_in_ns == 0 { window.start_ns } else { u64::MAX };
        slice.began_ns.fill(began_ns);
        slice.last_ns.fill(0);
        let middle_ns = window.start_ns + lead_in_ns.midpoint(length_ns);
        slice.middle_ns = if slice.open_loop { u64::MAX } else { middle_ns };
        let next_part_ns =
            if whole || lead_in_ns > 0 { slice.lead_in_end_ns } else { slice.middle_ns };
        slice.next_part_ns.fill(next_part_ns);
        slice.ended_ops.fill(0);
        slice.lead_in_ops.fill(0);
        slice.half.fill((0, 0));
        slice.before = before;
        self.tape_origin_ns = window.start_ns - slice.tape_ns;
        slice.tape_ns += length_ns;
        self.recorder.counted_from_ns = if slice.open_loop { slice.lead_in_end_ns } else { 0 };
        self.think_queue.pause(window.start_ns - self.window.end_ns.min(window.start_ns));
        self.channels.check_all();
        self.window = window;
        self.stopped = false;
    }

    /// The first operations of the slice are about to be sent.
    pub fn look_at_lead_in(&mut self, now_ns: u64) {
        if let Some(slice) = &mut self.slice {
            slice.look(now_ns);
        }
    }

    /// The result of the slice. All of its operations have ended.
    pub fn end_slice(&self) -> SliceResult {
        let Some(slice) = &self.slice else { return SliceResult::default() };
        let (elapsed_ns, callers) = if slice.open_loop {
            (slice.counted_ns, 1)
        } else if self.exhausted() {
            (0, 0)
        } else {
            (slice.elapsed_ns(self.stopped), self.channels.len() as u64)
        };
        let (half_ops, half_ns) =
            if slice.open_loop || callers == 0 { (0, 0) } else { slice.halves(self.stopped) };
        let (before, now) = (&slice.before, self.ended());
        let (ops, errors) = (now.ok.saturating_sub(before.ok), now.failed - before.failed);
        SliceResult {
            ops,
            errors,
            lead_in_ops: now.lead_in - before.lead_in,
            elapsed_ns,
            callers,
            // A barrier ends on its channel too, and is no operation.
            half_ops: half_ops.min(ops + errors),
            half_ns,
        }
    }

    /// The metrics of all slices: what is counted, and the lead-ins.
    pub fn into_slice_metrics(self) -> (Metrics, Metrics) {
        let mut metrics = self.recorder.metrics;
        let mut lead_in = self.recorder.lead_in.map_or_else(|| Metrics::empty(0), |each| *each);
        metrics.move_attempts(&mut lead_in);
        metrics.barriers += lead_in.barriers;
        (metrics, lead_in)
    }

    /// In a closed loop the connection decides whether what ends on it now is counted.
    #[inline]
    pub(super) fn choose_part(&mut self, c: usize) {
        if let Some(slice) = &self.slice
            && !slice.open_loop
        {
            let counts = slice.began_ns[self.channels.channel(c)] != u64::MAX;
            self.recorder.counted_from_ns = if counts { 0 } else { u64::MAX };
        }
    }

    fn ended(&self) -> Ended {
        let (ok, failed) = self.recorder.metrics.ended();
        let lead_in = self.recorder.lead_in.as_ref().map_or((0, 0), |each| each.ended());
        Ended { ok, failed, lead_in: lead_in.0 + lead_in.1 }
    }
}
