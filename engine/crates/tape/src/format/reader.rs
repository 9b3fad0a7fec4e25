//! Reads a tape. It was checked when it was opened, so reading needs no checks.

use memmap2::Mmap;

use super::layout::{COUNTER_START, FLAG_UNVERIFIED, Header, OP_BYTES, value_offset};
use super::operation::Op;

pub enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// A tape that has passed every check of docs/tape.md.
pub struct Tape {
    pub(super) bytes: Bytes,
    pub(super) header: Header,
}

impl Tape {
    pub fn key_count(&self) -> u32 {
        self.header.key_count as u32
    }

    /// The number of keys that the prefill stores, from the first key on.
    pub fn prefill_count(&self) -> u32 {
        self.header.prefill_count as u32
    }

    /// The number of records in a group. A group stays in one lane.
    pub fn group(&self) -> u64 {
        self.header.group
    }

    /// The first key that is a counter; `key_count` if there is none.
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

    /// The length of one pass of an open loop's schedule in ns; 0 in a closed loop.
    pub fn period_ns(&self) -> u64 {
        self.header.period_ns
    }

    /// The expiry time of the prefill, in seconds.
    pub fn exptime_s(&self) -> u32 {
        self.header.exptime_s as u32
    }

    pub fn verifies_values(&self) -> bool {
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

    /// The bytes of key `k`; k < key_count.
    #[inline]
    pub fn key(&self, k: u32) -> &[u8] {
        let (begin, end) = self.key_bounds(k);
        self.section(self.header.key_bytes_at + begin, end - begin)
    }

    /// The length of key `k` in bytes; k < key_count.
    #[inline]
    pub fn key_length(&self, k: u32) -> u64 {
        let (begin, end) = self.key_bounds(k);
        end - begin
    }

    /// Where key `k` begins and ends: two numbers that lie side by side.
    #[inline]
    fn key_bounds(&self, k: u32) -> (u64, u64) {
        let both = self.u64_at(self.header.key_offsets_at + u64::from(k) * 4);
        (both & u64::from(u32::MAX), both >> u32::BITS)
    }

    /// The size of the value of key `k` in bytes.
    #[inline]
    pub fn value_length(&self, k: u32) -> u32 {
        self.u32_at(self.header.lengths_at + u64::from(k) * 4)
    }

    /// The value of key `k` with a size of `length`, which must not exceed the pool. A counter has only
    /// one value.
    #[inline]
    pub fn value(&self, k: u32, length: u32) -> &[u8] {
        if k >= self.first_counter() {
            return COUNTER_START;
        }
        let offset = value_offset(k, length, self.header.pool_bytes);
        self.section(self.header.pool_at + offset, u64::from(length))
    }

    /// Whether the pool is large enough to check a value of this size.
    #[inline]
    pub fn pool_covers(&self, length: u64) -> bool {
        length <= self.header.pool_bytes
    }

    /// Record `j`; j < op_count.
    #[inline]
    pub fn op(&self, j: u64) -> Op {
        let at = (self.header.ops_at + j * OP_BYTES as u64) as usize;
        let bytes = &self.bytes.as_slice()[at..at + OP_BYTES];
        Op::from_bytes(bytes.try_into().expect("sixteen bytes")).expect("checked when opened")
    }

    /// The keys of a record: its run, its one key, or none.
    #[inline]
    pub fn run(&self, op: &Op) -> RunKeys<'_> {
        RunKeys { tape: self, op: *op, next: 0 }
    }

    /// The key at a position of a run; at < op.run.
    #[inline]
    pub fn run_key(&self, op: &Op, at: u16) -> u32 {
        self.run_entry(u64::from(op.key) + u64::from(at))
    }

    /// When record `j` is due, in ns from the start of the window; 0 in a closed loop.
    #[inline]
    pub fn due_ns(&self, j: u64) -> u64 {
        if self.header.times_at == 0 {
            return 0;
        }
        self.u64_at(self.header.times_at + j * 8)
    }

    /// Whether the callers of a closed loop have think times.
    #[inline]
    pub fn has_think_times(&self) -> bool {
        self.header.thinks_at != 0
    }

    /// Whether operations have intended starts: in an open loop, and with think times.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.is_open_loop() || self.has_think_times()
    }

    /// The think time before record `j` in ns: from the reply before it to its send.
    #[inline]
    pub fn think_ns(&self, j: u64) -> u64 {
        if self.header.thinks_at == 0 {
            return 0;
        }
        self.u64_at(self.header.thinks_at + j * 8)
    }

    #[inline]
    pub(crate) fn key_offset(&self, k: u64) -> u64 {
        u64::from(self.u32_at(self.header.key_offsets_at + k * 4))
    }

    #[inline]
    pub(crate) fn run_entry(&self, index: u64) -> u32 {
        self.u32_at(self.header.runs_at + index * 4)
    }

    #[inline]
    pub(crate) fn section(&self, at: u64, length: u64) -> &[u8] {
        &self.bytes.as_slice()[at as usize..(at + length) as usize]
    }

    #[inline]
    pub(crate) fn u32_at(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.section(at, 4).try_into().expect("four bytes"))
    }

    #[inline]
    pub(crate) fn u64_at(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.section(at, 8).try_into().expect("eight bytes"))
    }
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
