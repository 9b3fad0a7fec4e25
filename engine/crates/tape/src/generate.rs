//! Workload and schedule → the bytes of a tape. Pure: same input and seed, same bytes.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::format::{COUNTER_START, HEADER_BYTES, Header, KEY_BYTES_MAX, Op};
use crate::keys::{KeyWriter, mix};
use crate::law::SIZE_MOST;
use crate::operations::write_ops;
use crate::schedule::Think;
use crate::workload::{KeyShape, Schedule, Workload, WorkloadError, bad};

/// The least length of the value pool: long enough that values of neighbouring keys differ.
const POOL_BYTES_LEAST: u64 = 1 << 20;
/// The longest tape that is made: a guard against a slip of the keyboard.
pub(crate) const TAPE_BYTES_MOST: f64 = (4_u64 << 30) as f64;
/// Compressible and random bytes alternate in blocks of this length, well inside what deflate sees.
const POOL_BLOCK_BYTES: usize = 64;

/// Each purpose has a stream of its own, so that a change of one leaves the others as they were.
#[derive(Clone, Copy)]
pub enum Stream {
    Pool = 1,
    Ranks,
    Draws,
    Times,
}

pub fn stream(seed: u64, purpose: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose as u64);
    rng
}

/// Make the tape of a workload and schedule.
pub fn generate(
    workload: &Workload,
    schedule: &Schedule,
    seed: u64,
) -> Result<Vec<u8>, WorkloadError> {
    workload.check()?;
    schedule.check()?;
    check_bytes(workload, schedule)?;
    let lengths: Vec<u32> = (0..workload.keys).map(|k| length_of(k, workload, seed)).collect();
    let (key_offsets, key_bytes) = write_keys(workload, seed)?;
    let (mut times, period_ns, op_count) = schedule.times(seed);
    let group = workload.order.group();
    let op_count = whole_groups(op_count, group, times.is_some())?;
    if let Some(times) = &mut times {
        times.truncate(op_count as usize);
    }
    let keys_in_runs = op_count.saturating_mul(u64::from(workload.longest_run()));
    if keys_in_runs > u64::from(u32::MAX) && workload.has_runs() {
        return bad("--ops × --run is over 4e9 keys: fewer operations or shorter runs");
    }
    let (ops, runs) = write_ops(workload, &lengths, op_count, seed)?;
    let pool = write_pool(workload.size_most(), workload.compressibility, seed);
    let thinks = schedule.thinks(op_count, seed);
    let header = Header {
        seed,
        prefill_count: u64::from(workload.prefill_count()),
        period_ns,
        exptime_s: u64::from(workload.longest_exptime_s()),
        group,
        counter_count: u64::from(workload.counters),
        ..Header::default()
    };
    Ok(Sections { key_offsets, key_bytes, lengths, pool, ops, runs, times, thinks }
        .assemble(header))
}

/// What a tape is made of.
pub(crate) struct Sections {
    pub key_offsets: Vec<u32>,
    pub key_bytes: Vec<u8>,
    pub lengths: Vec<u32>,
    pub pool: Vec<u8>,
    pub ops: Vec<Op>,
    pub runs: Vec<u32>,
    pub times: Option<Vec<u64>>,
    pub thinks: Option<Vec<u64>>,
}

impl Sections {
    /// The tape's bytes; of the header, counts and places are filled in.
    pub(crate) fn assemble(self, mut header: Header) -> Vec<u8> {
        let mut tape = Assembly::new();
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

/// Refuse a tape that memory may not hold, before any of it is made.
fn check_bytes(workload: &Workload, schedule: &Schedule) -> Result<(), WorkloadError> {
    let (ops, bytes_per_op) = match *schedule {
        Schedule::Closed { ops, think: Think::None } => (ops as f64, 16.0),
        Schedule::Closed { ops, .. } => (ops as f64, 24.0),
        Schedule::Open { rate, duration_ns, .. } => (rate * duration_ns as f64 / 1e9, 24.0),
    };
    let run_bytes = if workload.has_runs() { f64::from(workload.longest_run()) * 4.0 } else { 0.0 };
    let key_bytes = match &workload.shape {
        KeyShape::Length(law) => law.most(KEY_BYTES_MAX as u32) as usize,
        KeyShape::Pattern(text) => text.len(),
        KeyShape::Names(names) => names.iter().map(String::len).max().unwrap_or(0),
    };
    let bytes = f64::from(workload.keys) * (key_bytes as f64 + 8.0)
        + ops * (bytes_per_op + run_bytes)
        + f64::from(workload.size_most());
    if bytes > TAPE_BYTES_MOST {
        return bad(format!(
            "a tape of about {:.0} GiB, at most 4 are made: lower --keys, --run, --ops or \
             --rate × --duration (a worker at the end of a tape begins it again)",
            bytes / f64::from(1 << 30)
        ));
    }
    Ok(())
}

/// Sections one after the other, each at a multiple of eight bytes.
struct Assembly {
    bytes: Vec<u8>,
}

impl Assembly {
    fn new() -> Assembly {
        Assembly { bytes: vec![0; HEADER_BYTES] }
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

/// The records of a tape are whole groups: what a schedule leaves over is cut, what is asked for
/// by number is filled up.
fn whole_groups(op_count: u64, group: u64, scheduled: bool) -> Result<u64, WorkloadError> {
    let whole = if scheduled { op_count / group * group } else { op_count.next_multiple_of(group) };
    if whole == 0 {
        return bad(format!("--sequence: {group} operations, the schedule has {op_count}"));
    }
    Ok(whole)
}

/// The value length of a key, a function of key and seed.
fn length_of(key: u32, workload: &Workload, seed: u64) -> u32 {
    if key >= workload.keys - workload.counters {
        return COUNTER_START.len() as u32;
    }
    workload.size.draw(mix(mix(seed).wrapping_add(u64::from(key))), SIZE_MOST)
}

fn write_keys(workload: &Workload, seed: u64) -> Result<(Vec<u32>, Vec<u8>), WorkloadError> {
    let writer = KeyWriter::new(&workload.shape, workload.keys, seed)?;
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for index in 0..workload.keys {
        writer.write(index, &mut bytes);
        let Ok(end) = u32::try_from(bytes.len()) else {
            return bad("the keys are longer than 4 GiB together: fewer or shorter keys");
        };
        offsets.push(end);
    }
    Ok((offsets, bytes))
}

/// The pool for values of at most `most` bytes: random bytes, with the leading part of each block
/// constant to make it compressible.
pub(crate) fn write_pool(most: u32, compressibility: f64, seed: u64) -> Vec<u8> {
    let bytes = POOL_BYTES_LEAST.next_multiple_of(8) + u64::from(most);
    let mut pool = vec![0; bytes as usize];
    stream(seed, Stream::Pool).fill_bytes(&mut pool);
    let constant = (POOL_BLOCK_BYTES as f64 * compressibility).round() as usize;
    for block in pool.chunks_mut(POOL_BLOCK_BYTES) {
        let end = constant.min(block.len());
        block[..end].fill(b'c');
    }
    pool
}
