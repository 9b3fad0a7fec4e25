//! Generates the records of a tape.

use std::collections::HashSet;
use std::ops::Range;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::Distribution as _;
use rand_distr::weighted::WeightedAliasIndex;

use crate::format::{Op, Verb};
use crate::random::{RandomStream, mix, numbered_stream};
use crate::workload::{
    KeySampler, MAX_EXPTIME_S, MixEntry, Order, Workload, WorkloadError, invalid, part_of,
};

/// The amount of an `incr` or `decr`.
const AMOUNT: u32 = 1;

/// Generate `op_count` records, and the run table that they refer to.
pub fn write_ops(
    workload: &Workload,
    lengths: &[u32],
    op_count: u64,
    seed: u64,
) -> Result<(Vec<Op>, Vec<u32>), WorkloadError> {
    let mut writer = OperationWriter {
        workload,
        lengths,
        sampler: OperationSampler::new(workload, seed)?,
        first_keys: workload.first_keys(),
        seed,
        writes: workload.varying_lengths().map_or_else(Vec::new, |_| vec![0; lengths.len()]),
        ops: Vec::with_capacity(op_count as usize),
        runs: Vec::new(),
    };
    match &workload.order {
        Order::Mixed => (0..op_count).for_each(|_| writer.draw_operation()),
        Order::Phases => writer.phases(op_count)?,
        Order::Sequence { steps, key_step } => {
            for group in 0..op_count / steps.len() as u64 {
                steps.iter().for_each(|step| {
                    let shift = group.wrapping_mul(u64::from(*key_step));
                    writer.step(step.kind, step.keys, shift);
                });
            }
        }
    }
    Ok((writer.ops, writer.runs))
}

struct OperationWriter<'a> {
    workload: &'a Workload,
    lengths: &'a [u32],
    sampler: OperationSampler,
    first_keys: Vec<u32>,
    seed: u64,
    /// If lengths vary: how often each key has been written.
    writes: Vec<u64>,
    ops: Vec<Op>,
    runs: Vec<u32>,
}

impl OperationWriter<'_> {
    fn draw_operation(&mut self) {
        let kind = self.workload.mix[self.sampler.verbs.sample(&mut self.sampler.rng)];
        self.step(kind, None, 0);
    }

    /// All operations of the first kind, then all of the second, and so on: each kind starts at the
    /// first key.
    fn phases(&mut self, op_count: u64) -> Result<(), WorkloadError> {
        let kinds = self.workload.mix.len() as u64;
        if !op_count.is_multiple_of(kinds) {
            return invalid(format!(
                "--order phases: --ops {op_count} is not a multiple of {kinds}"
            ));
        }
        let each = op_count / kinds;
        for kind in &self.workload.mix {
            if !kind.verb.has_run() {
                (0..each).for_each(|j| self.step(*kind, Some((0, 0)), j));
                continue;
            }
            let last = u32::from(self.workload.run) - 1;
            let span = u64::from(self.workload.run);
            (0..each).for_each(|j| self.step(*kind, Some((0, last)), j * span));
        }
        Ok(())
    }

    /// Generate one record. `keys`: its first and last key, moved by `shift`. `None`: draw them.
    fn step(&mut self, kind: MixEntry, keys: Option<(u32, u32)>, shift: u64) {
        let MixEntry { verb, noreply, .. } = kind;
        let mut op = Op { verb, noreply, run: 1, key: 0, length: 0, exptime_s: 0, generation: 0 };
        if verb.has_run() {
            op.key = self.runs.len() as u32;
            self.run(verb, keys, shift);
            op.run = (self.runs.len() - op.key as usize) as u16;
        } else if verb.is_keyless() {
            op.run = 0;
        } else if verb.counts() {
            let first = self.sampler.first_counter;
            op.key = keys.map_or_else(|| self.sampler.counter(), |(at, _)| first + at);
            op.length = AMOUNT;
        } else {
            op.key = match keys {
                Some((at, _)) => self.shifted(at, shift),
                None => self.sampler.key(verb),
            };
            op.length = if verb.writes() { self.length_of_write(op.key) } else { 0 };
        }
        let first = if verb.has_run() { self.runs[op.key as usize] } else { op.key };
        op.exptime_s = exptime_of(first, self.workload, &self.first_keys, self.seed);
        self.ops.push(op);
    }

    /// The length of the next write of a key: the key's own, or, if lengths vary, a byte more than the write before,
    /// from the highest on again from the lowest.
    fn length_of_write(&mut self, key: u32) -> u32 {
        let own = self.lengths[key as usize];
        let Some(range) = self.workload.varying_lengths() else { return own };
        let writes = &mut self.writes[key as usize];
        *writes += 1;
        let lengths = u64::from(range.high - range.low) + 1;
        range.low + ((u64::from(own - range.low) + *writes) % lengths) as u32
    }

    fn run(&mut self, verb: Verb, keys: Option<(u32, u32)>, shift: u64) {
        match keys {
            Some((first, last)) => {
                for at in first..=last {
                    let key = self.shifted(at, shift);
                    self.runs.push(key);
                }
            }
            None => {
                self.sampler.run(verb, self.workload.run, &mut self.runs);
            }
        }
    }

    fn shifted(&self, key: u32, shift: u64) -> u32 {
        ((u64::from(key) + shift) % u64::from(self.sampler.first_counter)) as u32
    }
}

/// Draws verbs and keys.
struct OperationSampler {
    rng: ChaCha8Rng,
    verbs: WeightedAliasIndex<f64>,
    keys: KeySampler,
    /// The number of keys to draw from.
    ranks: u32,
    absent: Option<AbsentKeys>,
    first_counter: u32,
    counters: u32,
    /// The keys of the current run.
    seen: HashSet<u32>,
}

/// The keys that are never stored, and the share of reads that hit.
struct AbsentKeys {
    ratio: f64,
    keys: Range<u32>,
}

impl OperationSampler {
    fn new(workload: &Workload, seed: u64) -> Result<OperationSampler, WorkloadError> {
        let weights = workload.mix.iter().map(|kind| kind.weight).collect();
        let Ok(verbs) = WeightedAliasIndex::new(weights) else {
            return invalid("--mix: the weights are too large or too small");
        };
        // Counters are never read or set. If all keys are counters, nothing is drawn from this range.
        let all = (workload.keys - workload.counters).max(1);
        let stored = workload.prefill_count();
        let count = if workload.hit_ratio.is_some() { stored.max(1) } else { all };
        let keys = KeySampler::new(&workload.distribution, count, stored, seed)?;
        let absent =
            workload.hit_ratio.map(|ratio| AbsentKeys { ratio, keys: stored..workload.keys });
        Ok(OperationSampler {
            rng: numbered_stream(seed, RandomStream::OperationSampler, workload.draws),
            verbs,
            keys,
            ranks: count,
            absent,
            first_counter: workload.keys - workload.counters,
            counters: workload.counters,
            seen: HashSet::new(),
        })
    }

    fn counter(&mut self) -> u32 {
        self.first_counter + self.rng.random_range(0..self.counters)
    }

    fn key(&mut self, verb: Verb) -> u32 {
        if let Some(absent) = &self.absent
            && verb.reads()
            && !self.rng.random_bool(absent.ratio)
        {
            return self.rng.random_range(absent.keys.clone());
        }
        self.keys.key(matches!(verb, Verb::Set | Verb::Add | Verb::Mset), &mut self.rng)
    }

    /// Draw the `run` keys of a batch: distinct ones, if there are that many. A steep distribution
    /// repeats its hottest keys. After ten draws per key, the most likely keys that are missing fill up
    /// the run.
    fn run(&mut self, verb: Verb, run: u16, out: &mut Vec<u32>) {
        let wanted = usize::from(run);
        if u32::from(run) > self.ranks || matches!(self.keys, KeySampler::Constant) {
            out.extend((0..wanted).map(|_| self.key(verb)));
            return;
        }
        let begin = out.len();
        self.seen.clear();
        for _ in 0..10 * wanted {
            if self.seen.len() == wanted {
                return;
            }
            let key = self.key(verb);
            if self.seen.insert(key) {
                out.push(key);
            }
        }
        let missing = wanted - (out.len() - begin);
        let likeliest = (0..self.ranks).map(|rank| self.keys.key_of_rank(rank));
        out.extend(likeliest.filter(|key| !self.seen.contains(key)).take(missing));
    }
}

/// The expiry time of a key: a function of key and seed, independent of its size and name.
pub fn exptime_of(key: u32, workload: &Workload, first_keys: &[u32], seed: u64) -> u32 {
    const SALT: u64 = 0x7474_6c73;
    let exptime_s = workload.exptime_s.of_part(part_of(key, first_keys));
    exptime_s.draw(mix(mix(seed ^ SALT).wrapping_add(u64::from(key))), MAX_EXPTIME_S)
}
