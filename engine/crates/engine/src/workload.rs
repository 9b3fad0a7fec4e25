//! The arguments that describe a workload; the verbs `tape` and `drive` share them.

use std::time::Duration;

use cachemark_tape::{
    Distribution, KeyShape, Kind, Order, Schedule, Span, Step, Workload, WorkloadError, parse_mix,
    parse_sequence,
};
use clap::ValueEnum;

use crate::units;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScheduleName {
    /// The next operation follows the answer to the one before
    Closed,
    /// Equal gaps
    Uniform,
    /// Exponential gaps
    Poisson,
}

/// What is done: keys, values, mix.
#[derive(clap::Args, Debug)]
pub struct WorkloadArguments {
    /// Number of keys (10k, 1M)
    #[arg(long, default_value = "10k", value_parser = key_count)]
    keys: u32,
    /// How keys are drawn: sequential, uniform, constant or zipf:EXPONENT
    #[arg(long, default_value = "uniform")]
    distribution: Distribution,
    /// Characters of a key: 20 or 16..40
    #[arg(long, default_value = "20", conflicts_with = "key_pattern")]
    key_length: Span,
    /// A text for keys with {index}, {index:08} or {hex:10} in it
    #[arg(long)]
    key_pattern: Option<String>,
    /// The keys themselves, in place of --keys
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["key_length", "key_pattern", "keys"])]
    key_names: Vec<String>,
    /// So many of the keys, the last ones, are counters for incr and decr
    #[arg(long, default_value_t = 0)]
    counters: u32,
    /// Bytes of a value: 100, 100..1000 or 1k..64k
    #[arg(long, default_value = "100")]
    size: Span,
    /// The part of the values that compression can remove, 0 to 1
    #[arg(long, default_value_t = 0.0)]
    compressibility: f64,
    /// Operations and their weights: get=9,set=1; also gets mget add replace delete touch gat
    /// version mset cas incr decr, and set_noreply and the like
    #[arg(long, default_value = "get=9,set=1", value_parser = mix)]
    mix: Mix,
    /// In which order the operations of the mix follow
    #[arg(long, value_enum, default_value_t = OrderName::Mixed)]
    order: OrderName,
    /// In place of --mix, the same operations again and again, on the keys named or on drawn ones:
    /// "set@0 get@0 mget@0-5 incr@0 get"
    #[arg(long, value_parser = sequence, conflicts_with_all = ["mix", "order"])]
    sequence: Option<Sequence>,
    /// Each time a sequence begins again, its keys move on by so many
    #[arg(long, default_value_t = 0, requires = "sequence")]
    key_step: u32,
    /// Keys in each mget or mset
    #[arg(long, default_value = "10", value_parser = run_length)]
    run: u16,
    /// The part of the keys that is stored first, 0 to 1
    #[arg(long, default_value_t = 1.0)]
    prefill: f64,
    /// Expiry time of what is stored, in seconds; 0 is never
    #[arg(long, default_value_t = 0)]
    exptime: u32,
    /// Records on the tape of a closed loop
    #[arg(long, default_value = "100k", value_parser = units::whole)]
    ops: u64,
    /// When operations are due
    #[arg(long, value_enum)]
    schedule: Option<ScheduleName>,
    /// Operations per second of an open loop (10k)
    #[arg(long, value_parser = units::rate, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// The same seed gives the same tape
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl WorkloadArguments {
    pub fn workload(&self) -> Workload {
        let shape = match &self.key_pattern {
            Some(pattern) => KeyShape::Pattern(pattern.clone()),
            None if !self.key_names.is_empty() => KeyShape::Names(self.key_names.clone()),
            None => KeyShape::Length(self.key_length),
        };
        let order = match (&self.sequence, self.order) {
            (Some(Sequence(steps)), _) => {
                Order::Sequence { steps: steps.clone(), key_step: self.key_step }
            }
            (None, OrderName::Phases) => Order::Phases,
            (None, OrderName::Mixed) => Order::Mixed,
        };
        let keys = match self.key_names.len() {
            0 => self.keys,
            named => named as u32,
        };
        Workload {
            keys,
            counters: self.counters,
            order,
            distribution: self.distribution,
            shape,
            size: self.size,
            compressibility: self.compressibility,
            mix: self.mix.0.clone(),
            run: self.run,
            prefill: self.prefill,
            exptime_s: self.exptime,
        }
    }

    /// The schedule; a rate alone means Poisson arrivals.
    pub fn schedule(&self, duration: Option<Duration>) -> Result<Schedule, WorkloadError> {
        let name = match (self.schedule, self.rate) {
            (Some(name), _) => name,
            (None, Some(_)) => ScheduleName::Poisson,
            (None, None) => ScheduleName::Closed,
        };
        let refuse = |text: &str| Err(WorkloadError(text.to_owned()));
        match (name, self.rate, duration) {
            (ScheduleName::Closed, None, _) => Ok(Schedule::Closed { ops: self.ops }),
            (ScheduleName::Closed, Some(_), _) => {
                refuse("--rate: a closed loop has no rate; --schedule uniform or poisson has")
            }
            (_, None, _) => refuse("an open loop needs --rate"),
            (_, _, None) => refuse("an open loop needs --duration"),
            (name, Some(rate), Some(duration)) => {
                let duration_ns = duration.as_nanos() as u64;
                Ok(if name == ScheduleName::Uniform {
                    Schedule::Uniform { rate, duration_ns }
                } else {
                    Schedule::Poisson { rate, duration_ns }
                })
            }
        }
    }
}
