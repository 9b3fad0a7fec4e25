//! The checks of docs/tape.md: a file must pass all of them before it is used.

use std::fmt;

use super::layout::{
    COUNTER_START, FLAG_UNVERIFIED, GENERATION_SHIFT, GENERATIONS, HEADER_BYTES, Header, MAGIC,
    MAX_KEY_BYTES, OP_BYTES, VERSION,
};
use super::operation::{Op, Verb};
use super::reader::Tape;

/// Why a file is not a tape: the failed check and its place.
#[derive(Debug)]
pub enum TapeError {
    Io(std::io::Error),
    Check { what: String, at: u64 },
}

impl fmt::Display for TapeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapeError::Io(error) => write!(out, "the tape cannot be read: {error}"),
            TapeError::Check { what, at } => write!(out, "not a tape: {what} (at byte {at})"),
        }
    }
}

impl std::error::Error for TapeError {}

fn reject<T>(what: impl Into<String>, at: u64) -> Result<T, TapeError> {
    Err(TapeError::Check { what: what.into(), at })
}

pub(crate) fn header(bytes: &[u8]) -> Result<Header, TapeError> {
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
        return reject("shorter than a header", bytes.len() as u64);
    };
    if head[..8] != MAGIC {
        return reject("it does not begin with CMTAPE", 0);
    }
    let version = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
    if version != VERSION {
        return reject(format!("version {version}, this program reads {VERSION}"), 8);
    }
    if u32::from_le_bytes(head[12..16].try_into().expect("four bytes")) != HEADER_BYTES as u32 {
        return reject("wrong header length", 12);
    }
    let header = Header::from_bytes(head);
    if header.file_bytes != bytes.len() as u64 {
        let says = header.file_bytes;
        return reject(format!("it says {says} bytes but has {}", bytes.len()), 16);
    }
    counts(&header)?;
    sections_inside(&header)?;
    Ok(header)
}

fn counts(header: &Header) -> Result<(), TapeError> {
    if header.key_count == 0 || header.key_count > u64::from(u32::MAX) {
        return reject(format!("{} keys", header.key_count), 32);
    }
    if header.prefill_count > header.key_count {
        return reject("more keys to prefill than there are", 40);
    }
    if header.op_count == 0 {
        return reject("no operation", 48);
    }
    if header.group == 0 || !header.op_count.is_multiple_of(header.group) {
        return reject(format!("groups of {} do not fill it", header.group), 160);
    }
    if header.thinks_at != 0 && header.times_at != 0 {
        return reject("a schedule leaves no time to think", 176);
    }
    if header.counter_count > header.key_count {
        return reject("more counters than keys", 168);
    }
    if header.exptime_s > u64::from(u32::MAX) {
        return reject("the expiry time is too large", 144);
    }
    if u64::from(header.flags as u32) & !FLAG_UNVERIFIED != 0 {
        return reject("unknown flags", 152);
    }
    if (header.times_at == 0) != (header.period_ns == 0) {
        return reject("a schedule needs both times and a period", 72);
    }
    Ok(())
}

fn sections_inside(header: &Header) -> Result<(), TapeError> {
    // (offset of the header field, start of the section, entries, bytes per entry)
    let sections = [
        (80, header.key_offsets_at, header.key_count.saturating_add(1), 4),
        (88, header.key_bytes_at, header.key_bytes, 1),
        (104, header.lengths_at, header.key_count, 4),
        (112, header.pool_at, header.pool_bytes, 1),
        (120, header.ops_at, header.op_count, OP_BYTES as u64),
        (128, header.runs_at, header.run_count, 4),
    ];
    let times = (136, header.times_at, header.op_count, 8);
    let thinks = (176, header.thinks_at, header.op_count, 8);
    let timed = [times, thinks].into_iter().filter(|(_, at, _, _)| *at != 0);
    for (field, at, entries, each) in sections.into_iter().chain(timed) {
        let end = entries.checked_mul(each).and_then(|length| at.checked_add(length));
        let inside = end.is_some_and(|end| end <= header.file_bytes);
        if at < HEADER_BYTES as u64 || !at.is_multiple_of(8) || !inside {
            return reject("a section lies outside the file", field);
        }
    }
    Ok(())
}

pub(crate) fn keys(tape: &Tape) -> Result<(), TapeError> {
    let mut before = 0;
    for k in 0..=tape.header.key_count {
        let offset = tape.key_offset(k);
        let at = tape.header.key_offsets_at + k * 4;
        if offset < before || offset > tape.header.key_bytes || (k == 0 && offset != 0) {
            return reject(format!("key offset {k} is out of order"), at);
        }
        let length = (offset - before) as usize;
        if k > 0 && (length == 0 || length > MAX_KEY_BYTES) {
            return reject(format!("key {} is of {length} bytes", k - 1), at);
        }
        before = offset;
    }
    let keys = tape.section(tape.header.key_bytes_at, tape.header.key_bytes);
    if let Some(invalid) = keys.iter().position(|byte| *byte <= b' ' || *byte == 0x7f) {
        let at = tape.header.key_bytes_at + invalid as u64;
        return reject("a key holds a space or control character", at);
    }
    for k in 0..tape.header.key_count {
        let at = tape.header.lengths_at + k * 4;
        if u64::from(tape.u32_at(at)) > tape.header.pool_bytes {
            return reject(format!("the value of key {k} is longer than the pool"), at);
        }
        let counts = k >= u64::from(tape.first_counter());
        if counts && tape.u32_at(at) as usize != COUNTER_START.len() {
            return reject(format!("counter {k} is not of ten digits"), at);
        }
    }
    for r in 0..tape.header.run_count {
        if u64::from(tape.run_entry(r)) >= tape.header.key_count {
            return reject(format!("run entry {r} names no key"), tape.header.runs_at + r * 4);
        }
    }
    Ok(())
}

pub(crate) fn operations(tape: &Tape) -> Result<(), TapeError> {
    for j in 0..tape.header.op_count {
        let at = tape.header.ops_at + j * OP_BYTES as u64;
        let bytes = tape.section(at, OP_BYTES as u64);
        let Some(op) = Op::from_bytes(bytes.try_into().expect("sixteen bytes")) else {
            return reject(format!("record {j} has unknown verb {}", bytes[0]), at);
        };
        let known = bytes[1] >> GENERATION_SHIFT < GENERATIONS;
        if !known || (op.noreply && !op.verb.may_be_noreply()) {
            return reject(format!("record {j} has unknown flags"), at + 1);
        }
        let may_have = op.verb.has_generation() && tape.generation_lanes() > 0;
        if op.generation > 0 && !may_have {
            return reject(format!("record {j} has a generation that it cannot have"), at + 1);
        }
        operation(tape, j, &op, at)?;
    }
    Ok(())
}

fn operation(tape: &Tape, j: u64, op: &Op, at: u64) -> Result<(), TapeError> {
    let key = u64::from(op.key);
    let run = u64::from(op.run);
    let fits = match op.verb {
        verb if verb.is_keyless() => run == 0,
        verb if verb.has_run() => run >= 1 && key + run <= tape.header.run_count,
        _ => run == 1 && key < tape.header.key_count,
    };
    if !fits {
        return reject(format!("record {j} names a key that is not there"), at + 4);
    }
    if !op.verb.counts() && u64::from(op.length) > tape.header.pool_bytes {
        return reject(format!("record {j} is longer than the pool"), at + 8);
    }
    if op.verb.extends() && op.length > 0 {
        let what = format!("record {j}: {} of {} bytes, not of none", op.verb.name(), op.length);
        return reject(what, at + 8);
    }
    let counter = |k| k >= tape.first_counter();
    let suited = match op.verb {
        Verb::Delete => true,
        verb if verb.counts() => tape.run(op).all(counter),
        _ => !tape.run(op).any(counter),
    };
    if !suited {
        let what = if op.verb.counts() { "no counter" } else { "a counter" };
        return reject(format!("record {j}: {} of {what}", op.verb.name()), at + 4);
    }
    Ok(())
}

/// The longest think time, so that sums of times do not overflow.
const MAX_THINK_NS: u64 = 1 << 50;

pub(crate) fn times(tape: &Tape) -> Result<(), TapeError> {
    for j in 0..tape.header.op_count {
        if tape.think_ns(j) > MAX_THINK_NS {
            return reject(format!("record {j} thinks for days"), tape.header.thinks_at + j * 8);
        }
    }
    if tape.header.times_at == 0 {
        return Ok(());
    }
    let mut before = 0;
    for j in 0..tape.header.op_count {
        let due = tape.due_ns(j);
        if due < before || due >= tape.header.period_ns {
            let at = tape.header.times_at + j * 8;
            return reject(format!("record {j} is due out of order"), at);
        }
        before = due;
    }
    Ok(())
}
