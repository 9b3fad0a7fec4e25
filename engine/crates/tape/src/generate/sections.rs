//! The sections of a tape, and how they become a file.

use rand::RngCore;

use crate::format::{HEADER_BYTES, Header, OP_BYTES, Op};
use crate::random::{RandomStream, random_stream};

/// Every section starts at a multiple of this.
const ALIGNMENT: usize = 8;
/// The minimum size of the value pool: large enough that the values of neighbouring keys differ.
const MIN_POOL_BYTES: u64 = 1 << 20;
/// The maximum size of a tape that is made: it protects against typing errors.
pub(crate) const MAX_TAPE_BYTES: f64 = (4_u64 << 30) as f64;
/// Compressible and random bytes alternate in blocks of this size, which is well below the window of
/// deflate.
const POOL_BLOCK_BYTES: usize = 64;

/// The sections of a tape.
pub(crate) struct TapeSections {
    pub key_offsets: Vec<u32>,
    pub key_bytes: Vec<u8>,
    pub lengths: Vec<u32>,
    pub pool: Vec<u8>,
    pub ops: Vec<Op>,
    pub runs: Vec<u32>,
    pub times: Option<Vec<u64>>,
    pub thinks: Option<Vec<u64>>,
}

impl TapeSections {
    /// The bytes of the tape. This fills in the counts and positions of the header.
    pub(crate) fn assemble(self, mut header: Header) -> Vec<u8> {
        let mut tape = TapeBuilder::with_room(self.file_bytes());
        header.key_count = self.lengths.len() as u64;
        header.op_count = self.ops.len() as u64;
        header.run_count = self.runs.len() as u64;
        header.pool_bytes = self.pool.len() as u64;
        header.key_bytes = self.key_bytes.len() as u64;
        // Each section is freed when it is in the tape, so that memory holds no large one twice.
        header.key_offsets_at = tape.add(self.key_offsets, u32::to_le_bytes);
        header.key_bytes_at = tape.add_bytes(self.key_bytes);
        header.lengths_at = tape.add(self.lengths, u32::to_le_bytes);
        header.pool_at = tape.add_bytes(self.pool);
        header.ops_at = tape.add(self.ops, Op::to_bytes);
        header.runs_at = tape.add(self.runs, u32::to_le_bytes);
        let mut add = |times: Vec<u64>| tape.add(times, u64::to_le_bytes);
        header.times_at = self.times.map_or(0, &mut add);
        header.thinks_at = self.thinks.map_or(0, &mut add);
        tape.finish(header)
    }

    /// The size of the tape, or a few bytes more.
    fn file_bytes(&self) -> usize {
        let times = [&self.times, &self.thinks].into_iter().flatten();
        let sections = [
            size_of_val(&self.key_offsets[..]),
            self.key_bytes.len(),
            size_of_val(&self.lengths[..]),
            self.pool.len(),
            self.ops.len() * OP_BYTES,
            size_of_val(&self.runs[..]),
            times.map(|each| size_of_val(&each[..])).sum(),
        ];
        HEADER_BYTES + sections.map(|bytes| bytes + ALIGNMENT).iter().sum::<usize>()
    }
}

/// Appends sections, each aligned.
struct TapeBuilder {
    bytes: Vec<u8>,
}

impl TapeBuilder {
    fn with_room(bytes: usize) -> TapeBuilder {
        let mut tape = TapeBuilder { bytes: Vec::with_capacity(bytes) };
        tape.bytes.resize(HEADER_BYTES, 0);
        tape
    }

    /// Append a section. Returns where it starts.
    fn add<T, const N: usize>(&mut self, section: Vec<T>, to_bytes: impl Fn(T) -> [u8; N]) -> u64 {
        let at = self.align();
        section.into_iter().for_each(|entry| self.bytes.extend_from_slice(&to_bytes(entry)));
        at
    }

    fn add_bytes(&mut self, section: Vec<u8>) -> u64 {
        let at = self.align();
        self.bytes.extend_from_slice(&section);
        at
    }

    fn align(&mut self) -> u64 {
        let at = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(at, 0);
        at as u64
    }

    fn finish(mut self, mut header: Header) -> Vec<u8> {
        header.file_bytes = self.bytes.len() as u64;
        self.bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        self.bytes
    }
}

/// The pool for values up to `most` bytes: random bytes. The first part of each block is constant,
/// which makes it compressible.
pub(crate) fn write_pool(most: u32, compressibility: f64, seed: u64) -> Vec<u8> {
    let bytes = MIN_POOL_BYTES.next_multiple_of(8) + u64::from(most);
    let mut pool = vec![0; bytes as usize];
    random_stream(seed, RandomStream::Pool).fill_bytes(&mut pool);
    let constant = (POOL_BLOCK_BYTES as f64 * compressibility).round() as usize;
    for block in pool.chunks_mut(POOL_BLOCK_BYTES) {
        let end = constant.min(block.len());
        block[..end].fill(b'c');
    }
    pool
}
