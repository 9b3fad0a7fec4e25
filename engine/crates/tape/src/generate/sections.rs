//! The sections of a tape, and how they become a file.

use rand::RngCore;

use crate::format::{HEADER_BYTES, Header, Op};
use crate::random::{RandomStream, random_stream};

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
        let mut tape = TapeBuilder::new();
        header.key_count = self.lengths.len() as u64;
        header.op_count = self.ops.len() as u64;
        header.run_count = self.runs.len() as u64;
        header.pool_bytes = self.pool.len() as u64;
        header.key_bytes = self.key_bytes.len() as u64;
        header.key_offsets_at = tape.add(self.key_offsets.iter().flat_map(|at| at.to_le_bytes()));
        header.key_bytes_at = tape.add(self.key_bytes);
        header.lengths_at = tape.add(self.lengths.iter().flat_map(|length| length.to_le_bytes()));
        header.pool_at = tape.add(self.pool);
        header.ops_at = tape.add(self.ops.into_iter().flat_map(Op::to_bytes));
        header.runs_at = tape.add(self.runs.iter().flat_map(|key| key.to_le_bytes()));
        let mut add = |times: Vec<u64>| tape.add(times.into_iter().flat_map(u64::to_le_bytes));
        header.times_at = self.times.map_or(0, &mut add);
        header.thinks_at = self.thinks.map_or(0, &mut add);
        tape.finish(header)
    }
}

/// Appends sections, each aligned to eight bytes.
struct TapeBuilder {
    bytes: Vec<u8>,
}

impl TapeBuilder {
    fn new() -> TapeBuilder {
        TapeBuilder { bytes: vec![0; HEADER_BYTES] }
    }

    fn add(&mut self, section: impl IntoIterator<Item = u8>) -> u64 {
        let at = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(at, 0);
        self.bytes.extend(section);
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
