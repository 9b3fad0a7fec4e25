//! Makes a tape from a recording: keys, operations and, if known, their times.

use rand::Rng;

use super::sections::{MAX_TAPE_BYTES, TapeSections, write_pool};
use crate::format::{COUNTER_START, Header, Op};
use crate::random::{RandomStream, random_stream};
use crate::workload::{Schedule, WorkloadError, invalid};

/// Recorded operations. Keys are unique; the last `counters` of them are counters.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub keys: Vec<Vec<u8>>,
    /// The value size of each key.
    pub lengths: Vec<u32>,
    pub counters: u32,
    pub ops: Vec<Op>,
    /// When each operation arrived, in ns from the first one, in order. Empty: unknown.
    pub times_ns: Vec<u64>,
}

/// When the operations of a recording are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplaySchedule {
    /// At the recorded times, `speed` times as fast.
    Recorded { speed: f64 },
    /// By a schedule that is independent of the recorded times.
    Schedule(Schedule),
}

const SECOND_NS: u64 = 1_000_000_000;
/// Of an operation with its time.
const OP_BYTES: f64 = 24.0;

/// Refuse a tape that may not fit into memory.
fn check_bytes(bytes: f64) -> Result<(), WorkloadError> {
    if bytes <= MAX_TAPE_BYTES {
        return Ok(());
    }
    let size = bytes / f64::from(1 << 30);
    invalid(format!(
        "a tape of {size:.0} GiB is too large, the limit is 4: use fewer --ops, or a lower --rate × \
         --duration"
    ))
}

impl Recording {
    /// Whether the times are whole seconds, as in many traces.
    pub fn has_whole_seconds(&self) -> bool {
        !self.times_ns.is_empty() && self.times_ns.iter().all(|at| at.is_multiple_of(SECOND_NS))
    }

    /// The bytes of a tape. The prefill stores the share `prefill` of the keys, in the order of their
    /// first use.
    ///
    /// If the times are whole seconds, arrivals within a second are drawn from a uniform distribution.
    /// A Poisson process has this distribution, given the number of arrivals.
    pub fn tape(
        &self,
        replay: ReplaySchedule,
        prefill: f64,
        compressibility: f64,
        seed: u64,
    ) -> Result<Vec<u8>, WorkloadError> {
        if self.ops.is_empty() {
            return invalid("the trace has no operation that can be played");
        }
        if !(0.0..=1.0).contains(&prefill) || !(0.0..=1.0).contains(&compressibility) {
            return invalid("--prefill and --compressibility must be between 0 and 1");
        }
        let (times, period_ns, count) = self.times(replay, seed)?;
        let thinks = match replay {
            ReplaySchedule::Schedule(schedule) => schedule.think_times(count, seed),
            ReplaySchedule::Recorded { .. } => None,
        };
        let ops: Vec<Op> = self.ops.iter().copied().cycle().take(count as usize).collect();
        let most = ops.iter().filter(|op| !op.verb.counts()).map(|op| op.length);
        let most = most.chain(self.lengths.iter().copied()).max().unwrap_or(0);
        let key_bytes: usize = self.keys.iter().map(Vec::len).sum();
        check_bytes(count as f64 * OP_BYTES + key_bytes as f64 + f64::from(most))?;
        if key_bytes > u32::MAX as usize {
            return invalid("the keys need more than 4 GiB: use fewer --ops");
        }
        let plain = self.keys.len() - self.counters as usize;
        let mut key_offsets = vec![0];
        let mut end = 0;
        key_offsets.extend(self.keys.iter().map(|key| {
            end += key.len() as u32;
            end
        }));
        let mut lengths = self.lengths.clone();
        lengths[plain..].fill(COUNTER_START.len() as u32);
        let header = Header {
            seed,
            prefill_count: (self.keys.len() as f64 * prefill).round() as u64,
            period_ns,
            group: 1,
            counter_count: u64::from(self.counters),
            ..Header::default()
        };
        let pool = write_pool(most, compressibility, seed);
        let key_bytes = self.keys.concat();
        let runs = Vec::new();
        Ok(TapeSections { key_offsets, key_bytes, lengths, pool, ops, runs, times, thinks }
            .assemble(header))
    }

    /// (due times in ns, period, number of records)
    fn times(
        &self,
        replay: ReplaySchedule,
        seed: u64,
    ) -> Result<(Option<Vec<u64>>, u64, u64), WorkloadError> {
        let speed = match replay {
            ReplaySchedule::Recorded { speed } => speed,
            // By default, each operation once.
            ReplaySchedule::Schedule(Schedule::Closed { ops, .. }) => {
                return Ok((None, 0, ops.min(self.ops.len() as u64)));
            }
            ReplaySchedule::Schedule(schedule) => {
                schedule.check()?;
                check_bytes(schedule.expected_ops() * OP_BYTES)?;
                return Ok(schedule.times(seed));
            }
        };
        if self.times_ns.is_empty() {
            return invalid("--schedule replay: the trace has no times: use another schedule");
        }
        if !(speed.is_finite() && speed > 0.0) {
            return invalid(format!("--schedule replay:{speed}: the speed must be above 0"));
        }
        let exact = if self.has_whole_seconds() {
            self.spread_within_seconds(seed)
        } else {
            self.times_ns.clone()
        };
        let first = exact[0];
        let faster = |at: u64| ((at - first) as f64 / speed).round() as u64;
        let times: Vec<u64> = exact.into_iter().map(faster).collect();
        let count = times.len() as u64;
        // A pass ends one mean gap after its last arrival.
        let last = times[times.len() - 1];
        Ok((Some(times), last + (last / count).max(1), count))
    }

    fn spread_within_seconds(&self, seed: u64) -> Vec<u64> {
        let mut rng = random_stream(seed, RandomStream::Times);
        let mut times = self.times_ns.clone();
        for second in times.chunk_by_mut(|a, b| a == b) {
            second.iter_mut().for_each(|at| *at += rng.random_range(0..SECOND_NS));
            second.sort_unstable();
        }
        times
    }
}
