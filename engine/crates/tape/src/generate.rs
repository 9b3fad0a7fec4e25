//! Workload and schedule → the bytes of a tape. Pure: same input and seed, same bytes.

use std::collections::HashSet;

use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution as _, Exp1, Zipf};

use crate::format::{HEADER_BYTES, Header, Op};
use crate::keys::{KeyWriter, mix};
use crate::workload::{Distribution, KeyShape, Schedule, Span, Workload, WorkloadError, bad};

/// The least length of the value pool: long enough that values of neighbouring keys differ.
const POOL_BYTES_LEAST: u64 = 1 << 20;
/// The longest tape that is made: a guard against a slip of the keyboard.
const TAPE_BYTES_MOST: f64 = (4_u64 << 30) as f64;
/// Compressible and random bytes alternate in blocks of this length, well inside what deflate sees.
const POOL_BLOCK_BYTES: usize = 64;

/// Each purpose has a stream of its own, so that a change of one leaves the others as they were.
#[derive(Clone, Copy)]
enum Stream {
    Pool = 1,
    Ranks,
    Draws,
    Times,
}

fn stream(seed: u64, purpose: Stream) -> ChaCha8Rng {
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
    let lengths: Vec<u32> = (0..workload.keys).map(|k| length_of(k, workload.size, seed)).collect();
    let (key_offsets, key_bytes) = write_keys(workload, seed)?;
    let (times, period_ns, op_count) = times_of(schedule, seed);
    let keys_in_runs = op_count.saturating_mul(u64::from(workload.run));
    if keys_in_runs > u64::from(u32::MAX) && workload.mix.iter().any(|kind| kind.verb.has_run()) {
        return bad("--ops × --run is over 4e9 keys: fewer operations or shorter runs");
    }
    let draws = Draws::new(workload, seed)?;
    let (ops, runs) = write_ops(workload, draws, &lengths, op_count);
    let pool = write_pool(workload, seed);
    let mut tape = Assembly::new();
    let mut header = Header {
        seed,
        key_count: u64::from(workload.keys),
        prefill_count: (f64::from(workload.keys) * workload.prefill).round() as u64,
        op_count,
        run_count: runs.len() as u64,
        pool_bytes: pool.len() as u64,
        period_ns,
        key_bytes: key_bytes.len() as u64,
        exptime_s: u64::from(workload.exptime_s),
        ..Header::default()
    };
    header.key_offsets_at = tape.add(key_offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    header.key_bytes_at = tape.add(key_bytes);
    header.lengths_at = tape.add(lengths.iter().flat_map(|length| length.to_le_bytes()));
    header.pool_at = tape.add(pool);
    header.ops_at = tape.add(ops.into_iter().flat_map(Op::to_bytes));
    header.runs_at = tape.add(runs.iter().flat_map(|key| key.to_le_bytes()));
    if let Some(times) = times {
        header.times_at = tape.add(times.iter().flat_map(|time| time.to_le_bytes()));
    }
    Ok(tape.finish(header))
}

/// Refuse a tape that memory may not hold, before any of it is made.
fn check_bytes(workload: &Workload, schedule: &Schedule) -> Result<(), WorkloadError> {
    let (ops, bytes_per_op) = match *schedule {
        Schedule::Closed { ops } => (ops as f64, 16.0),
        Schedule::Uniform { rate, duration_ns } | Schedule::Poisson { rate, duration_ns } => {
            (rate * duration_ns as f64 / 1e9, 24.0)
        }
    };
    let has_runs = workload.mix.iter().any(|kind| kind.verb.has_run());
    let run_bytes = if has_runs { f64::from(workload.run) * 4.0 } else { 0.0 };
    let key_bytes = match &workload.shape {
        KeyShape::Length(span) => span.high as usize,
        KeyShape::Pattern(text) => text.len(),
    };
    let bytes = f64::from(workload.keys) * (key_bytes as f64 + 8.0)
        + ops * (bytes_per_op + run_bytes)
        + f64::from(workload.size.high);
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

/// The value length of a key: uniform over the span, a function of key and seed.
fn length_of(key: u32, size: Span, seed: u64) -> u32 {
    let width = u64::from(size.high - size.low) + 1;
    let drawn = mix(mix(seed).wrapping_add(u64::from(key))) % width;
    size.low + drawn as u32
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

/// The intended starts in ns, the period, and the number of records.
fn times_of(schedule: &Schedule, seed: u64) -> (Option<Vec<u64>>, u64, u64) {
    match *schedule {
        Schedule::Closed { ops } => (None, 0, ops),
        Schedule::Uniform { rate, duration_ns } => {
            // The product is exact for whole rates and seconds; a quotient of gaps would not be.
            let count = (rate * duration_ns as f64 / 1e9).floor() as u64;
            let due = |j: u64| (j as f64 * 1e9 / rate).round() as u64;
            let times: Vec<u64> = (0..count).map(due).collect();
            let last = times.last().copied().unwrap_or(0);
            (Some(times), duration_ns.max(last + 1), count)
        }
        Schedule::Poisson { rate, duration_ns } => {
            let times = poisson(rate, duration_ns, seed);
            let count = times.len() as u64;
            (Some(times), duration_ns, count)
        }
    }
}

/// Arrivals of a Poisson process in [0, duration): exponential gaps, at least one arrival.
fn poisson(rate: f64, duration_ns: u64, seed: u64) -> Vec<u64> {
    let mut rng = stream(seed, Stream::Times);
    let mut times = Vec::with_capacity((rate * duration_ns as f64 / 1e9) as usize + 16);
    let mut now_ns = 0.0;
    loop {
        let gap: f64 = Exp1.sample(&mut rng);
        now_ns += gap * 1e9 / rate;
        let due = now_ns as u64;
        if due < duration_ns {
            times.push(due);
        } else if times.is_empty() {
            now_ns = 0.0;
        } else {
            return times;
        }
    }
}

/// Draws verbs and keys.
struct Draws {
    rng: ChaCha8Rng,
    verbs: WeightedAliasIndex<f64>,
    keys: Picker,
    /// The keys of the run being drawn.
    seen: HashSet<u32>,
}

enum Picker {
    Sequential { next: u32, count: u32 },
    Constant,
    Uniform { count: u32 },
    Zipf { law: Zipf<f64>, key_of_rank: Vec<u32> },
}

impl Draws {
    fn new(workload: &Workload, seed: u64) -> Result<Draws, WorkloadError> {
        let weights = workload.mix.iter().map(|kind| kind.weight).collect();
        let Ok(verbs) = WeightedAliasIndex::new(weights) else {
            return bad("--mix: these weights cannot be drawn from");
        };
        let count = workload.keys;
        let keys = match workload.distribution {
            Distribution::Sequential => Picker::Sequential { next: 0, count },
            Distribution::Constant => Picker::Constant,
            Distribution::Uniform => Picker::Uniform { count },
            Distribution::Zipf(exponent) => {
                let Ok(law) = Zipf::new(f64::from(count), exponent) else {
                    return bad(format!("zipf:{exponent} cannot be drawn from"));
                };
                let mut key_of_rank: Vec<u32> = (0..count).collect();
                key_of_rank.shuffle(&mut stream(seed, Stream::Ranks));
                Picker::Zipf { law, key_of_rank }
            }
        };
        Ok(Draws { rng: stream(seed, Stream::Draws), verbs, keys, seen: HashSet::new() })
    }

    fn key(&mut self) -> u32 {
        match &mut self.keys {
            Picker::Constant => 0,
            Picker::Uniform { count } => self.rng.random_range(0..*count),
            Picker::Sequential { next, count } => {
                let key = *next;
                *next = if key + 1 == *count { 0 } else { key + 1 };
                key
            }
            Picker::Zipf { law, key_of_rank } => {
                let rank = law.sample(&mut self.rng) as usize;
                key_of_rank[rank.clamp(1, key_of_rank.len()) - 1]
            }
        }
    }

    /// `run` keys, distinct wherever the table has that many. A steep law repeats its hottest
    /// keys for ever: what ten draws per key leave open goes to the likeliest keys not yet there.
    fn run(&mut self, run: u16, key_count: u32, out: &mut Vec<u32>) {
        let wanted = usize::from(run);
        if u32::from(run) > key_count || matches!(self.keys, Picker::Constant) {
            out.extend((0..wanted).map(|_| self.key()));
            return;
        }
        let begin = out.len();
        self.seen.clear();
        for _ in 0..10 * wanted {
            if self.seen.len() == wanted {
                return;
            }
            let key = self.key();
            if self.seen.insert(key) {
                out.push(key);
            }
        }
        let missing = wanted - (out.len() - begin);
        let likeliest = (0..key_count).map(|rank| self.keys.of_rank(rank));
        out.extend(likeliest.filter(|key| !self.seen.contains(key)).take(missing));
    }
}

impl Picker {
    /// The key of a rank, likeliest first; where all are alike, the table's order.
    fn of_rank(&self, rank: u32) -> u32 {
        match self {
            Picker::Zipf { key_of_rank, .. } => key_of_rank[rank as usize],
            _ => rank,
        }
    }
}

fn write_ops(
    workload: &Workload,
    mut draws: Draws,
    lengths: &[u32],
    op_count: u64,
) -> (Vec<Op>, Vec<u32>) {
    let mut ops = Vec::with_capacity(op_count as usize);
    let mut runs = Vec::new();
    for _ in 0..op_count {
        let kind = workload.mix[draws.verbs.sample(&mut draws.rng)];
        let mut op = Op {
            verb: kind.verb,
            noreply: kind.noreply,
            run: 1,
            key: 0,
            length: 0,
            exptime_s: workload.exptime_s,
        };
        if kind.verb.has_run() {
            op.key = runs.len() as u32;
            op.run = workload.run;
            draws.run(workload.run, workload.keys, &mut runs);
        } else if kind.verb == crate::format::Verb::Version {
            op.run = 0;
        } else {
            op.key = draws.key();
            op.length = if kind.verb.writes() { lengths[op.key as usize] } else { 0 };
        }
        ops.push(op);
    }
    (ops, runs)
}

/// The pool: random bytes, with the leading part of each block constant to make it compressible.
fn write_pool(workload: &Workload, seed: u64) -> Vec<u8> {
    let bytes = POOL_BYTES_LEAST.next_multiple_of(8) + u64::from(workload.size.high);
    let mut pool = vec![0; bytes as usize];
    stream(seed, Stream::Pool).fill_bytes(&mut pool);
    let constant = (POOL_BLOCK_BYTES as f64 * workload.compressibility).round() as usize;
    for block in pool.chunks_mut(POOL_BLOCK_BYTES) {
        let end = constant.min(block.len());
        block[..end].fill(b'c');
    }
    pool
}
