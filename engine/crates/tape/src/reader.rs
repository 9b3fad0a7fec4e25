//! Opening a tape: everything is checked once, so that reading it afterwards needs no checks.

use std::fmt;
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::format::{
    COUNTER_START, FLAG_NOREPLY, FLAG_UNVERIFIED, HEADER_BYTES, Header, KEY_BYTES_MAX, MAGIC,
    OP_BYTES, Op, VERSION, Verb, value_offset,
};

/// Why a file is no tape: the check that failed, and where.
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

fn refuse<T>(what: impl Into<String>, at: u64) -> Result<T, TapeError> {
    Err(TapeError::Check { what: what.into(), at })
}

enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// A tape that has passed every check of docs/tape.md.
pub struct Tape {
    bytes: Bytes,
    header: Header,
}

impl Tape {
    /// Map a file and check it. The file must not change while it is mapped; tapes are written
    /// under another name and renamed, so none does.
    pub fn open(path: &Path) -> Result<Tape, TapeError> {
        let file = File::open(path).map_err(TapeError::Io)?;
        // SAFETY: the mapping is private and read-only; a writer that truncates the file under us
        // would be another program's fault, and our own writer only renames whole files into place.
        let map = unsafe { Mmap::map(&file) }.map_err(TapeError::Io)?;
        Tape::check(Bytes::Mapped(map))
    }

    /// Check a tape that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Tape, TapeError> {
        Tape::check(Bytes::Owned(bytes))
    }

    fn check(bytes: Bytes) -> Result<Tape, TapeError> {
        let header = check_header(bytes.as_slice())?;
        let tape = Tape { bytes, header };
        tape.check_keys()?;
        tape.check_ops()?;
        tape.check_times()?;
        Ok(tape)
    }

    pub fn key_count(&self) -> u32 {
        self.header.key_count as u32
    }

    /// So many keys, from the first on, are stored before anything is timed.
    pub fn prefill_count(&self) -> u32 {
        self.header.prefill_count as u32
    }

    /// Records that belong together and stay in one lane.
    pub fn group(&self) -> u64 {
        self.header.group
    }

    /// The first key that is a counter; key_count if none is.
    #[inline]
    pub fn first_counter(&self) -> u32 {
        (self.header.key_count - self.header.counter_count) as u32
    }

    pub fn op_count(&self) -> u64 {
        self.header.op_count
    }

    pub fn seed(&self) -> u64 {
        self.header.seed
    }

    /// Length of one pass of an open loop's schedule in ns; 0 in a closed loop.
    pub fn period_ns(&self) -> u64 {
        self.header.period_ns
    }

    /// Expiry time that the prefill stores with, in seconds.
    pub fn exptime_s(&self) -> u32 {
        self.header.exptime_s as u32
    }

    pub fn verifies(&self) -> bool {
        self.header.flags & FLAG_UNVERIFIED == 0
    }

    pub fn is_open_loop(&self) -> bool {
        self.header.times_at != 0
    }

    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes
    }

    pub fn pool(&self) -> &[u8] {
        self.section(self.header.pool_at, self.header.pool_bytes)
    }

    /// The bytes of key `k`, k < key_count.
    #[inline]
    pub fn key(&self, k: u32) -> &[u8] {
        let begin = self.key_offset(u64::from(k));
        let end = self.key_offset(u64::from(k) + 1);
        self.section(self.header.key_bytes_at + begin, end - begin)
    }

    /// The value length of key `k` in bytes.
    #[inline]
    pub fn value_length(&self, k: u32) -> u32 {
        self.u32_at(self.header.lengths_at + u64::from(k) * 4)
    }

    /// The value of key `k` at a length; `length` must not exceed the pool. A counter has only one.
    #[inline]
    pub fn value(&self, k: u32, length: u32) -> &[u8] {
        if k >= self.first_counter() {
            return COUNTER_START;
        }
        let offset = value_offset(k, length, self.header.pool_bytes);
        self.section(self.header.pool_at + offset, u64::from(length))
    }

    /// Whether a reply of that length can be compared with the pool at all.
    #[inline]
    pub fn holds_length(&self, length: u64) -> bool {
        length <= self.header.pool_bytes
    }

    /// Record `j`, j < op_count.
    #[inline]
    pub fn op(&self, j: u64) -> Op {
        let at = (self.header.ops_at + j * OP_BYTES as u64) as usize;
        let bytes = &self.bytes.as_slice()[at..at + OP_BYTES];
        Op::from_bytes(bytes.try_into().expect("sixteen bytes")).expect("checked when opened")
    }

    /// The keys of a record: its run, or its one key, or none.
    #[inline]
    pub fn run(&self, op: &Op) -> RunKeys<'_> {
        RunKeys { tape: self, op: *op, next: 0 }
    }

    /// When record `j` is due, in ns from the window's start; 0 in a closed loop.
    #[inline]
    pub fn due_ns(&self, j: u64) -> u64 {
        if self.header.times_at == 0 {
            return 0;
        }
        self.u64_at(self.header.times_at + j * 8)
    }

    #[inline]
    fn key_offset(&self, k: u64) -> u64 {
        u64::from(self.u32_at(self.header.key_offsets_at + k * 4))
    }

    #[inline]
    fn run_entry(&self, index: u64) -> u32 {
        self.u32_at(self.header.runs_at + index * 4)
    }

    #[inline]
    fn section(&self, at: u64, length: u64) -> &[u8] {
        &self.bytes.as_slice()[at as usize..(at + length) as usize]
    }

    #[inline]
    fn u32_at(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.section(at, 4).try_into().expect("four bytes"))
    }

    #[inline]
    fn u64_at(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.section(at, 8).try_into().expect("eight bytes"))
    }

    fn check_keys(&self) -> Result<(), TapeError> {
        let mut before = 0;
        for k in 0..=self.header.key_count {
            let offset = self.key_offset(k);
            let at = self.header.key_offsets_at + k * 4;
            if offset < before || offset > self.header.key_bytes || (k == 0 && offset != 0) {
                return refuse(format!("key offset {k} is out of order"), at);
            }
            let length = (offset - before) as usize;
            if k > 0 && (length == 0 || length > KEY_BYTES_MAX) {
                return refuse(format!("key {} is of {length} bytes", k - 1), at);
            }
            before = offset;
        }
        let keys = self.section(self.header.key_bytes_at, self.header.key_bytes);
        if let Some(bad) = keys.iter().position(|byte| *byte <= b' ' || *byte == 0x7f) {
            let at = self.header.key_bytes_at + bad as u64;
            return refuse("a key holds a space or control character", at);
        }
        for k in 0..self.header.key_count {
            let at = self.header.lengths_at + k * 4;
            if u64::from(self.u32_at(at)) > self.header.pool_bytes {
                return refuse(format!("the value of key {k} is longer than the pool"), at);
            }
            let counts = k >= u64::from(self.first_counter());
            if counts && self.u32_at(at) as usize != COUNTER_START.len() {
                return refuse(format!("counter {k} is not of ten digits"), at);
            }
        }
        for r in 0..self.header.run_count {
            if u64::from(self.run_entry(r)) >= self.header.key_count {
                return refuse(format!("run entry {r} names no key"), self.header.runs_at + r * 4);
            }
        }
        Ok(())
    }

    fn check_ops(&self) -> Result<(), TapeError> {
        for j in 0..self.header.op_count {
            let at = self.header.ops_at + j * OP_BYTES as u64;
            let bytes = self.section(at, OP_BYTES as u64);
            let Some(op) = Op::from_bytes(bytes.try_into().expect("sixteen bytes")) else {
                return refuse(format!("record {j} has unknown verb {}", bytes[0]), at);
            };
            if bytes[1] & !FLAG_NOREPLY != 0 || (op.noreply && !op.verb.may_be_noreply()) {
                return refuse(format!("record {j} has unknown flags"), at + 1);
            }
            self.check_op(j, &op, at)?;
        }
        Ok(())
    }

    fn check_op(&self, j: u64, op: &Op, at: u64) -> Result<(), TapeError> {
        let key = u64::from(op.key);
        let run = u64::from(op.run);
        let fits = match op.verb {
            Verb::Version => run == 0,
            verb if verb.has_run() => run >= 1 && key + run <= self.header.run_count,
            _ => run == 1 && key < self.header.key_count,
        };
        if !fits {
            return refuse(format!("record {j} names a key that is not there"), at + 4);
        }
        if !op.verb.counts() && u64::from(op.length) > self.header.pool_bytes {
            return refuse(format!("record {j} is longer than the pool"), at + 8);
        }
        let counter = |k| k >= self.first_counter();
        let suited = match op.verb {
            Verb::Delete => true,
            verb if verb.counts() => self.run(op).all(counter),
            _ => !self.run(op).any(counter),
        };
        if !suited {
            let what = if op.verb.counts() { "no counter" } else { "a counter" };
            return refuse(format!("record {j}: {} of {what}", op.verb.name()), at + 4);
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), TapeError> {
        if self.header.times_at == 0 {
            return Ok(());
        }
        let mut before = 0;
        for j in 0..self.header.op_count {
            let due = self.due_ns(j);
            if due < before || due >= self.header.period_ns {
                let at = self.header.times_at + j * 8;
                return refuse(format!("record {j} is due out of order"), at);
            }
            before = due;
        }
        Ok(())
    }
}

fn check_header(bytes: &[u8]) -> Result<Header, TapeError> {
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
        return refuse("shorter than a header", bytes.len() as u64);
    };
    if head[..8] != MAGIC {
        return refuse("it does not begin with CMTAPE", 0);
    }
    let version = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
    if version != VERSION {
        return refuse(format!("version {version}, this program reads {VERSION}"), 8);
    }
    if u32::from_le_bytes(head[12..16].try_into().expect("four bytes")) != HEADER_BYTES as u32 {
        return refuse("wrong header length", 12);
    }
    let header = Header::from_bytes(head);
    if header.file_bytes != bytes.len() as u64 {
        let says = header.file_bytes;
        return refuse(format!("it says {says} bytes but has {}", bytes.len()), 16);
    }
    check_counts(&header)?;
    check_sections(&header)?;
    Ok(header)
}

fn check_counts(header: &Header) -> Result<(), TapeError> {
    if header.key_count == 0 || header.key_count > u64::from(u32::MAX) {
        return refuse(format!("{} keys", header.key_count), 32);
    }
    if header.prefill_count > header.key_count {
        return refuse("more keys to prefill than there are", 40);
    }
    if header.op_count == 0 {
        return refuse("no operation", 48);
    }
    if header.group == 0 || !header.op_count.is_multiple_of(header.group) {
        return refuse(format!("groups of {} do not fill it", header.group), 160);
    }
    if header.reserved != 0 {
        return refuse("a reserved field is used", 176);
    }
    if header.counter_count > header.key_count {
        return refuse("more counters than keys", 168);
    }
    if header.exptime_s > u64::from(u32::MAX) {
        return refuse("the expiry time is too large", 144);
    }
    if (header.times_at == 0) != (header.period_ns == 0) {
        return refuse("a schedule needs both times and a period", 72);
    }
    Ok(())
}

fn check_sections(header: &Header) -> Result<(), TapeError> {
    // (offset of the field, where the section is, entries, bytes each)
    let sections = [
        (80, header.key_offsets_at, header.key_count.saturating_add(1), 4),
        (88, header.key_bytes_at, header.key_bytes, 1),
        (104, header.lengths_at, header.key_count, 4),
        (112, header.pool_at, header.pool_bytes, 1),
        (120, header.ops_at, header.op_count, OP_BYTES as u64),
        (128, header.runs_at, header.run_count, 4),
    ];
    let times = (136, header.times_at, header.op_count, 8);
    let timed = (header.times_at != 0).then_some(times);
    for (field, at, entries, each) in sections.into_iter().chain(timed) {
        let end = entries.checked_mul(each).and_then(|length| at.checked_add(length));
        let inside = end.is_some_and(|end| end <= header.file_bytes);
        if at < HEADER_BYTES as u64 || !at.is_multiple_of(8) || !inside {
            return refuse("a section lies outside the file", field);
        }
    }
    Ok(())
}

/// The keys of one record.
pub struct RunKeys<'tape> {
    tape: &'tape Tape,
    op: Op,
    next: u16,
}

impl Iterator for RunKeys<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.next >= self.op.run {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(if self.op.verb.has_run() {
            self.tape.run_entry(u64::from(self.op.key) + u64::from(index))
        } else {
            self.op.key
        })
    }
}
