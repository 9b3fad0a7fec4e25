//! Turns the events of operations into metrics. If the keys of an operation are on several servers, it
//! is sent in parts: it starts when the first part is sent, and ends when the last part is answered.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::{Op, Tape, Verb};

use super::call_log::{CallLog, LoggedCalls};
use super::groups::{Groups, timed_length};
use super::metrics::Metrics;
use crate::operation::{Failure, OperationCounts, Pending};
use crate::routing::TapeView;

/// The metrics of a player, and its operations that were sent in parts.
pub struct Recorder {
    pub metrics: Metrics,
    /// Slices: the operations that are not counted.
    pub lead_in: Option<Box<Metrics>>,
    /// Operations whose intended start is earlier belong to the lead-in. In a closed loop it is 0: 0 counts
    /// them all, and `u64::MAX` none. Without slices it is 0.
    pub counted_from_ns: u64,
    /// The records of single operations.
    details: Details,
    splits: Vec<SplitOperation>,
    free: Vec<u32>,
}

/// The records besides metrics. Only closed loops have groups whose times are recorded, and only
/// open loops have call logs: so an operation costs one question for both.
enum Details {
    None,
    /// The groups that are being played.
    Groups(Groups),
    Calls(CallLog),
}

/// An operation that was sent in parts.
struct SplitOperation {
    /// The whole operation, with the results of its parts so far.
    whole: Pending,
    left: u16,
}

impl Recorder {
    /// Record the times of groups, if the tape has them. At most `outstanding` operations are outstanding.
    pub(crate) fn with_groups(self, tape: &Tape, outstanding: usize) -> Recorder {
        let groups = timed_length(tape).map(|length| Groups::new(length, outstanding));
        Recorder { details: groups.map_or(Details::None, Details::Groups), ..self }
    }

    /// Note each operation of an open loop. The client has `players` players.
    pub(crate) fn with_call_log(self, players: usize) -> Recorder {
        Recorder { details: Details::Calls(CallLog::new(players)), ..self }
    }

    /// The calls that were noted; none without a call log. The tape's time 0 was at `origin_ns`.
    pub(crate) fn take_calls(&mut self, tape: &Tape, origin_ns: u64) -> LoggedCalls {
        match std::mem::replace(&mut self.details, Details::None) {
            Details::Calls(calls) => calls.finish(tape, origin_ns),
            _ => LoggedCalls::default(),
        }
    }

    /// An operation is taken from the tape. Returns its group, if groups are timed.
    #[inline]
    pub(crate) fn take_group(&mut self) -> Option<u32> {
        match &mut self.details {
            Details::Groups(groups) => groups.take(),
            _ => None,
        }
    }

    pub fn new(metrics: Metrics) -> Recorder {
        let counted_from_ns = 0;
        Recorder {
            metrics,
            lead_in: None,
            counted_from_ns,
            details: Details::None,
            splits: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The metrics that an operation with this intended start belongs to.
    #[inline]
    pub fn metrics_of(&mut self, due_ns: u64) -> &mut Metrics {
        match &mut self.lead_in {
            Some(lead_in) if due_ns < self.counted_from_ns => lead_in,
            _ => &mut self.metrics,
        }
    }

    /// Register an operation that will be sent in parts. Returns its id.
    pub fn split(&mut self, whole: Pending, parts: u16) -> u32 {
        let split_operation = SplitOperation { whole, left: parts };
        match self.free.pop() {
            Some(split_id) => {
                self.splits[split_id as usize] = split_operation;
                split_id
            }
            None => {
                self.splits.push(split_operation);
                self.splits.len() as u32 - 1
            }
        }
    }

    /// An operation, or a part of one, is being sent now.
    #[inline]
    pub fn sent(&mut self, pending: &mut Pending, now_ns: u64) {
        if pending.sent_ns != 0 {
            return; // a second command: the operation started with its first one
        }
        pending.sent_ns = now_ns;
        match pending.split_id {
            None => {
                let metrics = self.metrics_of(pending.due_ns);
                record_start(pending, now_ns, metrics);
            }
            Some(split_id) => {
                let whole = &mut self.splits[split_id as usize].whole;
                if whole.sent_ns == 0 {
                    whole.sent_ns = now_ns;
                    let whole = *whole;
                    record_start(&whole, now_ns, self.metrics_of(whole.due_ns));
                }
            }
        }
    }

    /// An operation was due and was never sent. It has waited until now.
    pub fn never_sent(&mut self, op: Op, due_ns: u64, now_ns: u64) {
        let waited_ns = now_ns - due_ns;
        self.metrics_of(due_ns).never_sent(op.verb, op.noreply, waited_ns);
        if let Details::Calls(calls) = &mut self.details {
            let failure = Some(Failure::Connection);
            let never = Pending { sent_ns: due_ns, failure, ..Pending::open_loop(op, due_ns) };
            calls.note(&never, now_ns, &OperationCounts::default());
        }
    }

    /// An operation, or a part of one, was answered. True if this ended the operation.
    #[inline]
    pub fn answered(&mut self, pending: &Pending, now_ns: u64, view: TapeView<'_>) -> bool {
        match pending.split_id {
            _ if pending.barrier => true,
            None => {
                self.ended(pending, now_ns, view);
                true
            }
            Some(split_id) => self.part_ended(split_id, pending, now_ns, view),
        }
    }

    /// An operation, or a part of one, failed. True if this ended the operation.
    pub fn failed(
        &mut self,
        mut pending: Pending,
        failure: Failure,
        now_ns: u64,
        view: TapeView<'_>,
    ) -> bool {
        pending.failure = Some(failure);
        self.answered(&pending, now_ns, view)
    }

    /// A slice has ended. A group does not go on in the next one.
    pub(crate) fn cut_group(&mut self) {
        if let Details::Groups(groups) = &mut self.details {
            groups.cut();
        }
    }

    /// A whole operation succeeded, and these are its counts.
    #[inline(always)]
    pub(crate) fn succeeded(&mut self, pending: &Pending, now_ns: u64, counts: &OperationCounts) {
        self.metrics_of(pending.due_ns).completed(&pending.timestamps(now_ns), counts);
        self.note_end(pending, now_ns, || *counts);
    }

    /// A whole operation has ended.
    #[inline(always)]
    fn ended(&mut self, pending: &Pending, now_ns: u64, view: TapeView<'_>) {
        if pending.failure.is_some() {
            view.accept_any_generation();
        }
        record_end(pending, now_ns, view, self.metrics_of(pending.due_ns));
        self.note_end(pending, now_ns, || counts_of_ok(pending, view));
    }

    /// Note what is recorded of single operations.
    #[inline(always)]
    fn note_end(
        &mut self,
        pending: &Pending,
        now_ns: u64,
        counts: impl FnOnce() -> OperationCounts,
    ) {
        match &mut self.details {
            Details::None => {}
            Details::Groups(groups) => {
                let Some(group) = pending.group else { return };
                let counted = self.lead_in.is_none() || pending.due_ns >= self.counted_from_ns;
                let ok = counted && pending.failure.is_none() && !pending.wrong;
                if let Some(took_ns) = groups.ended(group, ok, pending.sent_ns, now_ns) {
                    let times = if injected(Bug::GroupTwice) { 2 } else { 1 };
                    self.metrics.groups.saturating_record_n(took_ns.max(1), times);
                }
            }
            Details::Calls(calls) => calls.note(pending, now_ns, &counts()),
        }
    }

    fn part_ended(
        &mut self,
        split_id: u32,
        part: &Pending,
        now_ns: u64,
        view: TapeView<'_>,
    ) -> bool {
        let split_operation = &mut self.splits[split_id as usize];
        let whole = &mut split_operation.whole;
        whole.failure = whole.failure.or(part.failure);
        whole.wrong |= part.wrong;
        whole.cut_off |= part.cut_off;
        if !part.is_replica {
            whole.counts.hits += part.counts.hits;
            whole.counts.misses += part.counts.misses;
            whole.counts.not_stored += part.counts.not_stored;
            whole.counts.value_bytes += part.counts.value_bytes;
        }
        split_operation.left -= 1;
        if split_operation.left > 0 {
            return false;
        }
        let whole = *whole;
        self.ended(&whole, now_ns, view);
        self.free.push(split_id);
        true
    }
}

#[inline(always)]
fn record_start(pending: &Pending, now_ns: u64, metrics: &mut Metrics) {
    if pending.barrier {
        metrics.barriers += 1;
        return;
    }
    metrics.attempted(pending.op.verb, pending.op.noreply);
    if pending.open_loop {
        metrics.send_lag.saturating_record(now_ns.saturating_sub(pending.due_ns).max(1));
    }
}

/// Record the end of an operation.
#[inline(always)]
fn record_end(pending: &Pending, now_ns: u64, view: TapeView<'_>, metrics: &mut Metrics) {
    if let Some(failure) = pending.failure {
        metrics.fail(&pending.timestamps(now_ns), failure, pending.cut_off);
    } else if pending.wrong {
        metrics.wrong_value(pending.op.verb, pending.op.noreply);
    } else {
        metrics.completed(&pending.timestamps(now_ns), &counts_of_ok(pending, view));
    }
}

/// The counts of an operation that succeeded.
#[inline(always)]
fn counts_of_ok(pending: &Pending, view: TapeView<'_>) -> OperationCounts {
    let mut counts = counts_before_reply(&pending.op, view);
    counts.hits = pending.counts.hits;
    counts.misses = pending.counts.misses;
    counts.not_stored = pending.counts.not_stored;
    match pending.op.verb {
        Verb::Cas if counts.hits == 0 => counts.value_bytes = 0,
        Verb::Cas => {}
        Verb::Fetch if counts.hits > 0 => counts.value_bytes = pending.counts.value_bytes,
        Verb::Fetch => {}
        _ => counts.value_bytes += pending.counts.value_bytes,
    }
    counts
}

/// The keys and bytes of an operation that are known before any reply.
#[inline(always)]
fn counts_before_reply(op: &Op, view: TapeView<'_>) -> OperationCounts {
    let mut counts = OperationCounts { keys: u32::from(op.run), ..OperationCounts::default() };
    if op.run == 1 && !op.verb.has_run() {
        counts.key_bytes = view.key_length(op.key);
        counts.value_bytes = if op.verb.writes() { u64::from(op.length) } else { 0 };
    } else {
        add_run(&mut counts, op, view);
    }
    counts
}

/// Add the keys and bytes of a run. Not inlined, so that the code for one key is short.
#[inline(never)]
fn add_run(counts: &mut OperationCounts, op: &Op, view: TapeView<'_>) {
    for k in view.keys(op) {
        counts.key_bytes += view.key_length(k);
        counts.value_bytes += match op.verb {
            Verb::Mset => u64::from(view.value_length(k)),
            verb if verb.writes() => u64::from(op.length),
            _ => 0,
        };
    }
}
