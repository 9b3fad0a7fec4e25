//! The calls of one player in an open loop, one by one, for a call log (docs/call-log.md).

use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cachemark_tape::{Op, Tape, Verb};

use crate::operation::{Failure, OperationCounts, Pending};

/// The most calls that the players of a client note together, and the most wrong values of each.
const CALLS_MAX: usize = 1 << 20;
const WRONG_VALUES_MAX: usize = 16;
const WRONG_BYTES_MAX: usize = 4096;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    Miss,
    Wrong,
    Failed(Failure),
}

/// A call, as it is noted in the window.
#[derive(Clone, Copy, Debug)]
struct NotedCall {
    op: Op,
    due_ns: u64,
    sent_ns: u64,
    ended_ns: u64,
    value_bytes: u32,
    outcome: CallOutcome,
}

/// A call, with the number of its record on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    pub begin_ns: u64,
    pub duration_ns: u64,
    pub record: u32,
    pub value_bytes: u32,
    pub outcome: CallOutcome,
}

/// All calls of one player, and its first wrong values.
#[derive(Clone, Debug, Default)]
pub struct LoggedCalls {
    pub calls: Vec<LoggedCall>,
    /// Each with the number of its record, and in base64.
    pub wrong_values: Vec<(u32, String)>,
}

/// A player's notes of its calls. The memory is allocated before the window.
pub(crate) struct CallLog {
    calls: Vec<NotedCall>,
    calls_max: usize,
    /// The index of the call, and the value that it read.
    wrong_values: Vec<(usize, Vec<u8>)>,
}

thread_local! {
    /// The last wrong value that this thread read. A reply is verified where the log is not known.
    static WRONG_VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Remember a wrong value for the call log, until the operation ends.
#[cold]
pub(crate) fn remember_wrong_value(value: &[u8]) {
    WRONG_VALUE.set(value[..value.len().min(WRONG_BYTES_MAX)].to_vec());
}

impl CallLog {
    /// A log for one of `players` players.
    pub(crate) fn new(players: usize) -> CallLog {
        let calls_max = CALLS_MAX / players;
        let wrong_values = Vec::with_capacity(WRONG_VALUES_MAX);
        CallLog { calls: Vec::with_capacity(calls_max), calls_max, wrong_values }
    }

    /// An operation has ended. `counts`: the counts of a success.
    pub(crate) fn note(&mut self, pending: &Pending, now_ns: u64, counts: &OperationCounts) {
        if self.calls.len() == self.calls_max {
            return;
        }
        let outcome = outcome(pending, counts);
        let done = matches!(outcome, CallOutcome::Ok | CallOutcome::Miss);
        if outcome == CallOutcome::Wrong && self.wrong_values.len() < WRONG_VALUES_MAX {
            self.wrong_values.push((self.calls.len(), WRONG_VALUE.take()));
        }
        self.calls.push(NotedCall {
            op: pending.op,
            due_ns: pending.due_ns,
            sent_ns: pending.sent_ns,
            ended_ns: now_ns,
            value_bytes: if done { counts.value_bytes as u32 } else { 0 },
            outcome,
        });
    }

    /// The calls with their records. The tape's time 0 was at `origin_ns`.
    pub(crate) fn finish(self, tape: &Tape, origin_ns: u64) -> LoggedCalls {
        let calls: Vec<LoggedCall> = self
            .calls
            .iter()
            .map(|call| LoggedCall {
                begin_ns: call.sent_ns,
                duration_ns: call.ended_ns - call.sent_ns,
                record: record_of(tape, &call.op, call.due_ns - origin_ns),
                value_bytes: call.value_bytes,
                outcome: call.outcome,
            })
            .collect();
        let wrong = self.wrong_values.into_iter();
        let wrong_values =
            wrong.map(|(at, value)| (calls[at].record, STANDARD.encode(value))).collect();
        LoggedCalls { calls, wrong_values }
    }
}

fn outcome(pending: &Pending, counts: &OperationCounts) -> CallOutcome {
    let reads = matches!(pending.op.verb, Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat);
    match pending.failure {
        Some(failure) => CallOutcome::Failed(failure),
        None if pending.wrong => CallOutcome::Wrong,
        None if reads && counts.hits == 0 => CallOutcome::Miss,
        None => CallOutcome::Ok,
    }
}

/// The record that an operation comes from, by its intended start. Records that are alike in both are
/// as good as each other. An operation does not carry the number of its record: all of them would be larger for it.
fn record_of(tape: &Tape, op: &Op, due_ns: u64) -> u32 {
    let due_ns = due_ns % tape.period_ns().max(1);
    let (mut from, mut to) = (0, tape.op_count());
    while from < to {
        let middle = from + (to - from) / 2;
        if tape.due_ns(middle) < due_ns { from = middle + 1 } else { to = middle }
    }
    let due_then = |record: &u64| tape.due_ns(*record) == due_ns;
    let mut records = (from..tape.op_count()).take_while(due_then);
    records.find(|record| tape.op(*record) == *op).unwrap_or(from) as u32
}
