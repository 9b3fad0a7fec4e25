//! The call log of docs/call-log.md: a record of each call of an open loop, written after the run.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::tape::{Operation, Verb};
use crate::verify::{ReplyStatus, Verified};

const RECORD_BYTES: usize = 32;
const MOST_RECORDS: usize = 1 << 20;
const MOST_WRONG_REPLIES: usize = 16;
const OK: u8 = 0;
const MISS: u8 = 1;
const WRONG: u8 = 2;

/// The calls of one lane. The main thread reads them even while a call of the lane hangs.
pub struct CallLog {
    caller: u16,
    most_bytes: usize,
    noted: Mutex<Noted>,
}

struct Noted {
    records: Vec<u8>,
    /// Numbers of records on the tape, with their first wrong values.
    wrong: Vec<(usize, Vec<u8>)>,
}

impl CallLog {
    /// A log for each lane of a run, if it asks for one. Allocates the memory, before the window.
    pub fn of_run(path: &str, open_loop: bool, lanes: usize) -> Vec<Arc<CallLog>> {
        if path.is_empty() || !open_loop {
            return Vec::new();
        }
        let most_bytes = MOST_RECORDS / lanes * RECORD_BYTES;
        let noted =
            || Mutex::new(Noted { records: Vec::with_capacity(most_bytes), wrong: Vec::new() });
        (0..lanes)
            .map(|caller| Arc::new(CallLog { caller: caller as u16, most_bytes, noted: noted() }))
            .collect()
    }

    /// Note a call that has ended.
    pub fn note(&self, op: &Operation, verified: &Verified, began_ns: u64, now_ns: u64) {
        let mut noted = self.noted();
        if noted.records.len() == self.most_bytes {
            return;
        }
        let done = verified.status < ReplyStatus::WrongValue;
        let value_bytes = if done { verified.value_bytes as u32 } else { 0 };
        let mut record = [0; RECORD_BYTES];
        record[..8].copy_from_slice(&began_ns.to_le_bytes());
        record[8..16].copy_from_slice(&(now_ns - began_ns).to_le_bytes());
        record[16..20].copy_from_slice(&(op.number as u32).to_le_bytes());
        record[20..24].copy_from_slice(&value_bytes.to_le_bytes());
        record[24..26].copy_from_slice(&self.caller.to_le_bytes());
        record[26] = outcome(op, verified);
        noted.records.extend_from_slice(&record);
        if verified.status == ReplyStatus::WrongValue && noted.wrong.len() < MOST_WRONG_REPLIES {
            noted.wrong.push((op.number, verified.wrong.clone()));
        }
    }

    /// Write the calls of all lanes to a file, if the run asked for that.
    pub fn write(path: &str, lanes: &[Arc<CallLog>]) -> io::Result<()> {
        if lanes.is_empty() {
            return Ok(());
        }
        let mut file = b"CMCALLS\0".to_vec();
        file.extend_from_slice(&1_u32.to_le_bytes());
        file.extend_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
        for lane in lanes {
            file.extend_from_slice(&lane.noted().records);
        }
        std::fs::write(path, file)
    }

    /// The first wrong values of all lanes, for the message.
    pub fn wrong_replies<'a>(lanes: impl Iterator<Item = &'a Arc<CallLog>>) -> Vec<Value> {
        let message = |(record, value): &(usize, Vec<u8>)| json!({"record": record, "value": STANDARD.encode(value)});
        let replies =
            lanes.flat_map(|lane| lane.noted().wrong.iter().map(message).collect::<Vec<_>>());
        replies.take(MOST_WRONG_REPLIES).collect()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcomes of failures have the order of their statuses.
fn outcome(op: &Operation, verified: &Verified) -> u8 {
    if verified.status >= ReplyStatus::WrongValue {
        return WRONG + (verified.status as u8 - ReplyStatus::WrongValue as u8);
    }
    let reads = op.verb.is(&[Verb::GET, Verb::GETS, Verb::MGET, Verb::GAT]);
    if reads && verified.found == 0 { MISS } else { OK }
}
