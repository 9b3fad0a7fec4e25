//! The call log of a run, as docs/call-log.md defines it.

use std::fs;
use std::io;

use cachemark_load::{CallOutcome, Failure, LoggedCall, LoggedCalls};

use super::messages::WrongReply;

const VERSION: u32 = 1;
const RECORD_BYTES: usize = 32;
const WRONG_REPLIES_MAX: usize = 16;

/// Write the calls of all threads.
pub fn write(path: &str, threads: &[LoggedCalls]) -> io::Result<()> {
    let mut file = b"CMCALLS\0".to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
    for (caller, thread) in threads.iter().enumerate() {
        for call in &thread.calls {
            file.extend_from_slice(&record(call, caller as u16));
        }
    }
    fs::write(path, file)
}

/// The first wrong values of all threads.
pub fn wrong_replies(threads: &[LoggedCalls]) -> Vec<WrongReply> {
    let values = threads.iter().flat_map(|thread| &thread.wrong_values);
    let replies =
        values.map(|(record, value)| WrongReply { record: *record, value: value.clone() });
    replies.take(WRONG_REPLIES_MAX).collect()
}

fn record(call: &LoggedCall, caller: u16) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&call.begin_ns.to_le_bytes());
    record[8..16].copy_from_slice(&call.duration_ns.to_le_bytes());
    record[16..20].copy_from_slice(&call.record.to_le_bytes());
    record[20..24].copy_from_slice(&call.value_bytes.to_le_bytes());
    record[24..26].copy_from_slice(&caller.to_le_bytes());
    record[26] = number(call.outcome);
    record
}

fn number(outcome: CallOutcome) -> u8 {
    match outcome {
        CallOutcome::Ok => 0,
        CallOutcome::Miss => 1,
        CallOutcome::Wrong => 2,
        CallOutcome::Failed(Failure::Timeout) => 3,
        CallOutcome::Failed(Failure::Connection) => 4,
        CallOutcome::Failed(Failure::Server) => 5,
        CallOutcome::Failed(Failure::Client) => 6,
        CallOutcome::Failed(Failure::Protocol) => 7,
    }
}
