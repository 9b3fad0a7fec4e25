//! The arguments that describe a workload; the verbs `tape` and `drive` share them.
//!
//! All are optional: what is not given is the preset's, and what the preset leaves open has a
//! default.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use cachemark_tape::{
    Arrivals, Distribution, KeyShape, Kind, Law, Order, Replay, Schedule, Step, Think, Workload,
    WorkloadError, generate, parse_mix, parse_sequence, seconds,
};
use cachemark_trace::{Format, Imported, import_file};
use clap::ValueEnum;

use crate::{presets, units};

#[derive(Clone, Debug)]
struct Mix(Vec<Kind>);

fn mix(text: &str) -> Result<Mix, WorkloadError> {
    parse_mix(text).map(Mix)
}

#[derive(Clone, Debug)]
struct Sequence(Vec<Step>);

fn sequence(text: &str) -> Result<Sequence, WorkloadError> {
    parse_sequence(text).map(Sequence)
}

fn exptime(text: &str) -> Result<Law, WorkloadError> {
    Law::parse(text, seconds)
}

fn zipf(text: &str) -> Result<Distribution, WorkloadError> {
    format!("zipf:{text}").parse()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderName {
    /// Drawn by weight
    Mixed,
    /// All of the first kind, then all of the second
    Phases,
}

fn run_length(text: &str) -> Result<u16, String> {
    u16::try_from(units::whole(text)?).map_err(|_| format!("{text}: at most 65535 keys in a run"))
}

fn key_count(text: &str) -> Result<u32, String> {
    u32::try_from(units::whole(text)?).map_err(|_| format!("{text}: at most 4,294,967,295 keys"))
}

/// When operations are due.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ScheduleName {
    Closed,
    Open(Arrivals),
    /// A trace's own times, so many times as fast.
    Replay(f64),
}

impl FromStr for ScheduleName {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<ScheduleName, WorkloadError> {
        match text {
            "closed" => Ok(ScheduleName::Closed),
            "replay" => Ok(ScheduleName::Replay(1.0)),
            _ if text.starts_with("replay:") => match text["replay:".len()..].parse::<f64>() {
                Ok(speed) if speed > 0.0 && speed.is_finite() => Ok(ScheduleName::Replay(speed)),
                _ => Err(WorkloadError(format!(
                    "{text}: write replay, or replay:10 for ten times as fast"
                ))),
            },
            _ => text.parse().map(ScheduleName::Open),
        }
    }
}

/// What is done: keys, values, mix.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct WorkloadArguments {
    /// A workload by name: etc usr app var sys, ycsb-a to -d and -f, twitter-52 and others
    /// (`tape presets` has them); any other option takes the place of its own
    #[arg(long)]
    preset: Option<String>,
    /// Number of keys (10k, 1M) [default: 10k]
    #[arg(long, value_parser = key_count)]
    keys: Option<u32>,
    /// How keys are drawn: sequential, uniform, constant, zipf:EXPONENT, ycsb-zipfian,
    /// hotspot:KEYS:OPERATIONS, latest:EXPONENT, gaussian:DEVIATION [default: uniform]
    #[arg(long)]
    distribution: Option<Distribution>,
    /// The same as --distribution zipf:EXPONENT
    #[arg(long, value_name = "EXPONENT", value_parser = zipf, conflicts_with = "distribution")]
    zipf: Option<Distribution>,
    /// Characters of a key: 20, 16..40 or a law like those of --size [default: 20]
    #[arg(long, conflicts_with = "key_pattern")]
    key_length: Option<Law>,
    /// A text for keys with {index}, {index:08} or {hex:10} in it
    #[arg(long)]
    key_pattern: Option<String>,
    /// The keys themselves, in place of --keys
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["key_length", "key_pattern", "keys"])]
    key_names: Vec<String>,
    /// So many of the keys, the last ones, are counters for incr and decr
    #[arg(long)]
    counters: Option<u32>,
    /// Bytes of a value: 100, 100..1000, 1k..64k, gpareto:LOCATION:SCALE:SHAPE, pareto:LEAST:ALPHA,
    /// gev:LOCATION:SCALE:SHAPE, lognormal:MEDIAN:SIGMA, or several by weight: 100=9,1k..4k=1
    /// [default: 100]
    #[arg(long)]
    size: Option<Law>,
    /// The part of the values that compression can remove, 0 to 1
    #[arg(long)]
    compressibility: Option<f64>,
    /// Operations and their weights: get=9,set=1; also gets mget add replace delete touch gat
    /// version mset cas incr decr, append and prepend (of no byte), flush, fetch (a get, and on a miss
    /// a set), and set_noreply and the like
    /// [default: get=9,set=1]
    #[arg(long, value_parser = mix)]
    mix: Option<Mix>,
    /// In which order the operations of the mix follow
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// In place of --mix, the same operations again and again, on the keys named or on drawn ones:
    /// "set@0 get@0 mget@0-5 incr@0 get"
    #[arg(long, value_parser = sequence, conflicts_with_all = ["mix", "order"])]
    sequence: Option<Sequence>,
    /// Each time a sequence begins again, its keys move on by so many
    #[arg(long, default_value_t = 0, requires = "sequence")]
    key_step: u32,
    /// Keys in each mget or mset [default: 10]
    #[arg(long, value_parser = run_length)]
    run: Option<u16>,
    /// The part of the keys that is stored first, 0 to 1; 0 for a trace that begins with a cold cache
    /// [default: 1, or the hit ratio]
    #[arg(long)]
    prefill: Option<f64>,
    /// So many of the reads are of keys that are stored first, the others of keys that never are
    #[arg(long)]
    hit_ratio: Option<f64>,
    /// Expiry time of what is stored: seconds, 10m, 1h..1d or a law like those of --size; 0 is never
    #[arg(long, value_parser = exptime)]
    exptime: Option<Law>,
    /// Records on the tape of a closed loop [default: 100k]
    #[arg(long, value_parser = units::whole)]
    ops: Option<u64>,
    /// When operations are due: closed, uniform, poisson, gpareto:SHAPE, bursts:FACTOR:SHARE:LENGTH,
    /// of a trace also replay[:SPEED] [default: poisson with a rate, closed without]
    #[arg(long)]
    schedule: Option<ScheduleName>,
    /// Operations per second of an open loop (10k)
    #[arg(long, value_parser = units::rate, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// In a closed loop, how long a caller waits after each reply: 1ms, or exp:1ms for exponential
    #[arg(long)]
    think: Option<Think>,
    /// Play a recording: Twitter's or CacheLib's trace, memcached's `watch fetchers mutations`, or CSV
    /// with a header (op, key, time, size, ttl); also .zst and .gz; --ops reads so many operations
    #[arg(long, conflicts_with_all = [
        "preset", "keys", "distribution", "zipf", "key_length", "key_pattern", "key_names",
        "counters", "size", "mix", "order", "sequence", "run", "hit_ratio", "exptime",
    ])]
    trace: Option<PathBuf>,
    /// twitter, kvcache, memcached or csv [default: what the first line looks like]
    #[arg(long, requires = "trace")]
    trace_format: Option<Format>,
    /// The same seed gives the same tape [default: 1]
    #[arg(long)]
    seed: Option<u64>,
}

impl WorkloadArguments {
    /// What is asked for; an error names the option.
    pub fn workload(&self) -> Result<Workload, String> {
        let given = self.with_preset()?;
        let order = match (&given.sequence, given.order) {
            (Some(Sequence(steps)), _) => {
                Order::Sequence { steps: steps.clone(), key_step: given.key_step }
            }
            (None, Some(OrderName::Phases)) => Order::Phases,
            (None, _) => Order::Mixed,
        };
        let keys = match given.key_names.len() {
            0 => given.keys.unwrap_or(Workload::default().keys),
            named => named as u32,
        };
        let usual = Workload::default();
        Ok(Workload {
            keys,
            shape: given.shape(),
            order,
            counters: given.counters.unwrap_or(0),
            distribution: given.distribution.or(given.zipf).unwrap_or(usual.distribution),
            size: given.size.unwrap_or(usual.size),
            compressibility: given.compressibility.unwrap_or(usual.compressibility),
            mix: given.mix.map_or(usual.mix, |Mix(kinds)| kinds),
            run: given.run.unwrap_or(usual.run),
            prefill: given.prefill.or(given.hit_ratio).unwrap_or(usual.prefill),
            hit_ratio: given.hit_ratio,
            exptime_s: given.exptime.unwrap_or(usual.exptime_s),
        })
    }

    /// The tape of all that; an open loop's schedule is as long as `duration`.
    pub fn tape(&self, duration: Option<Duration>) -> Result<Vec<u8>, String> {
        let seed = self.seed.unwrap_or(1);
        let made = match (&self.trace, self.schedule) {
            (Some(path), _) => {
                let most = self.ops.unwrap_or(u64::MAX);
                let trace = import_file(path, self.trace_format, most)?;
                tell(&trace, self.schedule);
                let replay = self.replay(duration).map_err(|error| error.to_string())?;
                let prefill = self.prefill.unwrap_or(1.0);
                let compressibility = self.compressibility.unwrap_or(0.0);
                trace.recorded.tape(replay, prefill, compressibility, seed)
            }
            (None, Some(ScheduleName::Replay(_))) => {
                return Err("--schedule replay: of which --trace?".to_owned());
            }
            (None, _) => {
                let (workload, schedule) = self.plan(duration)?;
                generate(&workload, &schedule, seed)
            }
        };
        made.map_err(|error| error.to_string())
    }

    /// What a tape is made of that no trace is.
    pub fn plan(&self, duration: Option<Duration>) -> Result<(Workload, Schedule), String> {
        let schedule = self.schedule(duration).map_err(|error| error.to_string())?;
        Ok((self.workload()?, schedule))
    }

    /// Whether it is played from a trace.
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some()
    }

    /// The same as an open loop of another rate.
    pub fn at_rate(&self, rate: f64) -> WorkloadArguments {
        let ops = self.ops.filter(|_| self.is_recorded());
        WorkloadArguments { rate: Some(rate), ops, ..self.clone() }
    }

    /// Refuse what keeps a search for a rate from being one.
    pub fn check_search(&self) -> Result<(), String> {
        match (self.schedule, self.think) {
            (Some(ScheduleName::Closed | ScheduleName::Replay(_)), _) => Err(
                "--search tries rates, and a closed loop or a replay has none: leave --schedule \
                 out, or take poisson, uniform, gpareto or bursts"
                    .to_owned(),
            ),
            (_, Some(_)) => {
                Err("--search plays open loops, where nobody waits to send: leave out --think"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Refuse the length of runs where there are none.
    pub fn check_run(&self) -> Result<(), String> {
        let given = self.with_preset()?;
        let mix = given.mix.map_or(Workload::default().mix, |Mix(kinds)| kinds);
        let runs = given.sequence.is_some() || mix.iter().any(|kind| kind.verb.has_run());
        match self.run {
            Some(_) if !runs => Err("--run: no operation of the --mix is of several keys; mget \
                                     and mset are"
                .to_owned()),
            _ => Ok(()),
        }
    }

    /// The same as a closed loop.
    pub fn closed(&self) -> WorkloadArguments {
        WorkloadArguments { rate: None, schedule: None, ..self.clone() }
    }

    fn replay(&self, duration: Option<Duration>) -> Result<Replay, WorkloadError> {
        match (self.schedule, self.rate) {
            (Some(ScheduleName::Replay(_)), Some(_)) => Err(WorkloadError(
                "--rate: a replay has the trace's own; --schedule poisson has one".to_owned(),
            )),
            (Some(ScheduleName::Replay(_)), None) if self.think.is_some() => Err(WorkloadError(
                "--think: a replay sends when its trace did; leave one of them out".to_owned(),
            )),
            (Some(ScheduleName::Replay(speed)), None) => Ok(Replay::Recorded { speed }),
            (None | Some(ScheduleName::Closed), None) => {
                let think = self.think.unwrap_or_default();
                Ok(Replay::Schedule(Schedule::Closed { ops: u64::MAX, think }))
            }
            _ => self.schedule(duration).map(Replay::Schedule),
        }
    }

    fn shape(&self) -> KeyShape {
        match &self.key_pattern {
            Some(pattern) => KeyShape::Pattern(pattern.clone()),
            None if !self.key_names.is_empty() => KeyShape::Names(self.key_names.clone()),
            None => KeyShape::Length(self.key_length.clone().unwrap_or(Law::fixed(20))),
        }
    }

    /// With the preset's options where none are given. Options that say the same thing in
    /// different ways stand or fall together.
    fn with_preset(&self) -> Result<WorkloadArguments, String> {
        let given = self.clone();
        let Some(name) = &self.preset else { return Ok(given) };
        let preset = presets::arguments(name)?;
        let keys_are_shaped = given.key_length.is_some()
            || given.key_pattern.is_some()
            || !given.key_names.is_empty();
        let ordered = given.mix.is_some() || given.sequence.is_some();
        let stored = given.prefill.is_some() || given.hit_ratio.is_some();
        let drawn = given.distribution.or(given.zipf);
        Ok(WorkloadArguments {
            keys: given.keys.or(preset.keys),
            distribution: drawn.or(preset.distribution),
            key_length: given.key_length.or(preset.key_length.filter(|_| !keys_are_shaped)),
            key_pattern: given.key_pattern.or(preset.key_pattern.filter(|_| !keys_are_shaped)),
            size: given.size.or(preset.size),
            mix: given.mix.or(preset.mix.filter(|_| !ordered)),
            prefill: given.prefill.or(preset.prefill.filter(|_| !stored)),
            hit_ratio: given.hit_ratio.or(preset.hit_ratio.filter(|_| !stored)),
            exptime: given.exptime.or(preset.exptime),
            ..given
        })
    }

    /// The schedule; a rate alone means Poisson arrivals.
    fn schedule(&self, duration: Option<Duration>) -> Result<Schedule, WorkloadError> {
        let name = match (self.schedule, self.rate) {
            (Some(name), _) => name,
            (None, Some(_)) => ScheduleName::Open(Arrivals::Poisson),
            (None, None) => ScheduleName::Closed,
        };
        let think = self.think.unwrap_or_default();
        let refuse = |text: &str| Err(WorkloadError(text.to_owned()));
        match (name, self.rate, duration) {
            (ScheduleName::Closed, None, _) => {
                Ok(Schedule::Closed { ops: self.ops.unwrap_or(100_000), think })
            }
            (ScheduleName::Closed, Some(_), _) => {
                refuse("--rate: a closed loop has no rate; --schedule uniform or poisson has")
            }
            (ScheduleName::Replay(_), _, _) => refuse("--schedule replay belongs to a --trace"),
            _ if think != Think::None => refuse("--think: in an open loop nobody waits to send"),
            _ if self.ops.is_some() && !self.is_recorded() => {
                refuse("--ops: an open loop has as many operations as its rate and its length make")
            }
            (_, None, _) => refuse("an open loop needs --rate"),
            (_, _, None) => refuse("an open loop needs --duration"),
            (ScheduleName::Open(arrivals), Some(rate), Some(duration)) => {
                Ok(Schedule::Open { arrivals, rate, duration_ns: duration.as_nanos() as u64 })
            }
        }
    }
}

/// What of a trace is not on its tape, and what on it was not in the trace, on stderr.
fn tell(trace: &Imported, schedule: Option<ScheduleName>) {
    for (name, count) in &trace.skipped {
        eprintln!("trace: {count} left out, which a tape does not hold: {name}");
    }
    if trace.lost > 0 {
        eprintln!("trace: memcached itself could not keep {} lines", trace.lost);
    }
    if matches!(schedule, Some(ScheduleName::Replay(_))) && trace.recorded.has_whole_seconds() {
        eprintln!("trace: its times are whole seconds; arrivals within each are drawn");
    }
}
