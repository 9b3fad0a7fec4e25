//! Reads a tape. It was checked when it was opened, so reading needs no checks.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use memmap2::Mmap;

use super::layout::{COUNTER_START, FLAG_UNVERIFIED, GENERATIONS, Header, OP_BYTES, value_offset};
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
    /// Reads may bring any generation: see `accept_any_generation`.
    pub(super) any_generation: AtomicBool,
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

    /// The value of key `k` with a size of `length`, which must not exceed the pool, as the prefill stores it.
    #[inline]
    pub fn value(&self, k: u32, length: u32) -> &[u8] {
        self.value_of(k, length, 0)
    }

    /// The same of a generation. A counter has only one value.
    #[inline]
    pub fn value_of(&self, k: u32, length: u32, generation: u8) -> &[u8] {
        if k >= self.first_counter() {
            return COUNTER_START;
        }
        let offset = value_offset(k, length, generation, self.header.pool_bytes);
        self.section(self.header.pool_at + offset, u64::from(length))
    }

    /// The number of lanes that the generations are for; 0 if there are none.
    #[inline]
    pub fn generation_lanes(&self) -> u64 {
        self.header.generation_lanes()
    }

    /// From now on a read may bring any generation of its key: the tape is played in another way than its
    /// generations are for, or an operation failed, and its write may still come.
    pub fn accept_any_generation(&self) {
        self.any_generation.store(true, Relaxed);
    }

    /// Whether a value that is not of the generation that the record of its read tells is right all the same:
    /// of another that other writes may have left, at least as new as the lane's last write. `told` is 0 if the
    /// record tells none.
    #[cold]
    pub fn allows(&self, k: u32, data: &[u8], told: u8) -> bool {
        let any = told == 0 || self.any_generation.load(Relaxed);
        let may_be = |g: &u8| any || *g == 1 || (told == 1 && *g > 1);
        let is = |g: u8| self.value_of(k, data.len() as u32, g) == data;
        self.generation_lanes() > 0 && (0..GENERATIONS).filter(may_be).any(is)
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
