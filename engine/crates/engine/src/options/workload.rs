//! The options that describe a workload. The verbs `tape`, `drive` and `null-client` share them.
//!
//! All are optional. An option that is not given has the preset's value, or else a default.

use std::path::PathBuf;

use cachemark_command::units;
use cachemark_tape::{
    IntegerDistribution, KeyDistribution, MixEntry, SequenceStep, Think, WorkloadError, parse_mix,
    parse_sequence, seconds,
};
use cachemark_trace::{Columns, Format, Gets};
use clap::ValueEnum;

use crate::options::schedule_name::ScheduleName;

#[derive(Clone, Debug)]
pub(super) struct Mix(pub(super) Vec<MixEntry>);

fn mix(text: &str) -> Result<Mix, WorkloadError> {
    parse_mix(text).map(Mix)
}

#[derive(Clone, Debug)]
pub(super) struct Sequence(pub(super) Vec<SequenceStep>);

fn sequence(text: &str) -> Result<Sequence, WorkloadError> {
    parse_sequence(text).map(Sequence)
}

fn exptime(text: &str) -> Result<IntegerDistribution, WorkloadError> {
    IntegerDistribution::parse(text, seconds)
}

fn zipf(text: &str) -> Result<KeyDistribution, WorkloadError> {
    format!("zipf:{text}").parse()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GetsName {
    /// As it was logged
    AsLogged,
    /// It stores the value that it did not find
    CacheAside,
}

impl From<GetsName> for Gets {
    fn from(name: GetsName) -> Gets {
        match name {
            GetsName::AsLogged => Gets::AsLogged,
            GetsName::CacheAside => Gets::CacheAside,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderName {
    /// Drawn at random by weight
    Mixed,
    /// All operations of the first kind, then all of the second
    Phases,
}

fn run_length(text: &str) -> Result<u16, String> {
    u16::try_from(units::whole(text)?).map_err(|_| format!("{text}: a run has at most 65535 keys"))
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1, such as 0.5".to_owned()),
    }
}

fn key_count(text: &str) -> Result<u32, String> {
    u32::try_from(units::whole(text)?).map_err(|_| format!("{text}: at most 4,294,967,295 keys"))
}

/// The workload: keys, values, mix, schedule.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct WorkloadArguments {
    /// A named workload: etc usr app var sys, ycsb-a to -d and -f, twitter-52 and others
    /// (`tape presets` lists them); other options override the preset's
    #[arg(long)]
    pub(super) preset: Option<String>,
    /// Number of keys (10k, 1M) [default: 10k]
    #[arg(long, value_parser = key_count)]
    pub(super) keys: Option<u32>,
    /// How keys are drawn: sequential, uniform, constant, zipf:EXPONENT, ycsb-zipfian,
    /// hotspot:KEYS:OPERATIONS, latest:EXPONENT, gaussian:DEVIATION (a share of all keys: 0.1),
    /// recency:NEW:DISTANCES (the share of new keys, and how many other keys were used since)
    /// [default: uniform]
    #[arg(long)]
    pub(super) distribution: Option<KeyDistribution>,
    /// The same as --distribution zipf:EXPONENT
    #[arg(long, value_name = "EXPONENT", value_parser = zipf, conflicts_with = "distribution")]
    pub(super) zipf: Option<KeyDistribution>,
    /// Length of a key in characters: 20, 16..40 or a distribution as for --size [default: 20]
    #[arg(long, conflicts_with = "key_pattern")]
    pub(super) key_length: Option<IntegerDistribution>,
    /// A pattern for keys, with {index}, {index:08} or {hex:10} in it
    #[arg(long)]
    pub(super) key_pattern: Option<String>,
    /// The keys themselves, instead of --keys
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["key_length", "key_pattern", "keys"])]
    pub(super) key_names: Vec<String>,
    /// How many of the keys, the last ones, are counters for incr and decr
    #[arg(long)]
    pub(super) counters: Option<u32>,
    /// Size of a value in bytes: 100, 100..1000, 1k..64k, gpareto:LOCATION:SCALE:SHAPE, pareto:LEAST:ALPHA,
    /// gev:LOCATION:SCALE:SHAPE, lognormal:MEDIAN:SIGMA, or several by weight: 100=9,1k..4k=1
    /// [default: 100]
    #[arg(long)]
    pub(super) size: Option<IntegerDistribution>,
    /// The share of a value that compression can remove, 0 to 1
    #[arg(long, value_parser = share)]
    pub(super) compressibility: Option<f64>,
    /// Operations and their weights: get=9,set=1; also gets mget add replace delete touch gat
    /// version mset cas incr decr, append and prepend (of no byte), flush, fetch (a get, and on a miss
    /// a set), and set_noreply and the like
    /// [default: get=9,set=1]
    #[arg(long, value_parser = mix)]
    pub(super) mix: Option<Mix>,
    /// The order of the operations of the mix
    #[arg(long, value_enum)]
    pub(super) order: Option<OrderName>,
    /// Instead of --mix: repeat these operations, on the given keys or on drawn ones:
    /// "set@0 get@0 mget@0-5 incr@0 get"
    #[arg(long, value_parser = sequence, conflicts_with_all = ["mix", "order"])]
    pub(super) sequence: Option<Sequence>,
    /// Each time the sequence begins again, its keys advance by this number
    #[arg(long, default_value_t = 0, requires = "sequence")]
    pub(super) key_step: u32,
    /// Keys in each mget or mset [default: 10]
    #[arg(long, value_parser = run_length)]
    pub(super) run: Option<u16>,
    /// The share of the keys that is stored first, 0 to 1 [default: 1, or the hit ratio; of a trace 0: a
    /// cold cache]
    #[arg(long, value_parser = share)]
    pub(super) prefill: Option<f64>,
    /// The share of reads whose keys are stored first; the keys of the other reads are never stored
    #[arg(long, value_parser = share)]
    pub(super) hit_ratio: Option<f64>,
    /// Expiry of stored items: seconds, 10m, 1h..1d or a distribution as for --size; 0 means never
    #[arg(long, value_parser = exptime)]
    pub(super) exptime: Option<IntegerDistribution>,
    /// Operations on the tape of a closed loop, or of a trace [default: 20k to 100k, more if hits depend on earlier
    /// operations, less if each has many keys; or the whole trace]
    #[arg(long, visible_alias = "records", value_parser = units::whole)]
    pub(super) ops: Option<u64>,
    /// When operations are due: closed, uniform, poisson, gpareto:SHAPE, bursts:FACTOR:SHARE:LENGTH; with a
    /// trace also replay[:SPEED] [default: poisson with --rate, closed without]
    #[arg(long)]
    pub(super) schedule: Option<ScheduleName>,
    /// Operations per second of an open loop (10k)
    #[arg(long, value_parser = units::rate, allow_negative_numbers = true)]
    pub(super) rate: Option<f64>,
    /// In a closed loop, how long a caller waits after each reply: 1ms, or exp:1ms for exponential
    #[arg(long)]
    pub(super) think: Option<Think>,
    /// Play a recorded trace: of Twitter, CacheLib or memcached's `watch fetchers mutations`, or CSV with a
    /// header (op, key, time, size, ttl); also .zst and .gz; --ops limits the operations
    #[arg(long, conflicts_with_all = [
        "preset", "keys", "distribution", "zipf", "key_length", "key_pattern", "key_names",
        "counters", "size", "mix", "order", "sequence", "run", "hit_ratio", "exptime",
    ])]
    pub(super) trace: Option<PathBuf>,
    /// twitter, kvcache, memcached or csv [default: recognised from the first lines]
    #[arg(long, requires = "trace")]
    pub(super) trace_format: Option<Format>,
    /// The columns of a trace without a header, such as time:ms,op,key,size: time (in s; also :ms :us :100ns :ns), op,
    /// key, size, ttl, key_size, count, and - for others. Between them is what separates them in the file
    #[arg(long, requires = "trace", conflicts_with = "trace_format")]
    pub(super) columns: Option<Columns>,
    /// The effect of a get of a trace that misses: nothing (as-logged), or it stores the value (cache-aside)
    /// [default: as-logged]
    #[arg(long, requires = "trace", value_enum)]
    pub(super) gets: Option<GetsName>,
    /// The share of a trace's operations that may be left out, because a tape cannot hold them, 0 to 1 [default: 0.01]
    #[arg(long, requires = "trace", value_parser = share)]
    pub(super) left_out: Option<f64>,
    /// Options of `tape write` only.
    #[arg(skip)]
    pub(super) vary_lengths: bool,
    #[arg(skip)]
    pub(super) draws: u64,
    /// Without --ops: the operations of the longest window, and the most on its tape.
    #[arg(skip)]
    pub(super) window: Option<(u64, u64)>,
    /// The same seed gives the same tape [default: 1]
    #[arg(long)]
    pub(super) seed: Option<u64>,
}
