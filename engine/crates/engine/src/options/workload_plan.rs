//! From the workload options to a workload, a schedule and a tape.

use std::path::Path;
use std::time::Duration;

use cachemark_command::process::print_error;
use cachemark_tape::{
    Arrivals, IntegerDistribution, KeyShape, Order, ReplaySchedule, Schedule, Think, Workload,
    WorkloadError, generate,
};
use cachemark_trace::{Gets, ImportOptions, ImportedTrace, import_file};

use crate::options::presets;
use crate::options::schedule_name::ScheduleName;
use crate::options::tape_length::chosen_ops;
use crate::options::workload::{Mix, OrderName, Sequence, WorkloadArguments};

/// The share of a trace's operations that may be left out, unless an option sets it.
const MOST_LEFT_OUT: f64 = 0.01;

impl WorkloadArguments {
    /// The workload that the options describe. An error names the option.
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
        let defaults = Workload::default();
        Ok(Workload {
            keys,
            shape: given.shape(),
            order,
            counters: given.counters.unwrap_or(0),
            distribution: given.distribution.or(given.zipf).unwrap_or(defaults.distribution),
            size: given.size.unwrap_or(defaults.size),
            vary_lengths: given.vary_lengths,
            draws: given.draws,
            compressibility: given.compressibility.unwrap_or(defaults.compressibility),
            mix: given.mix.map_or(defaults.mix, |Mix(kinds)| kinds),
            run: given.run.unwrap_or(defaults.run),
            prefill: given.prefill.or(given.hit_ratio).unwrap_or(defaults.prefill),
            hit_ratio: given.hit_ratio,
            exptime_s: given.exptime.unwrap_or(defaults.exptime_s),
        })
    }

    /// The same workload, whose writes of a key have other lengths each time, or not, with draws of this number.
    pub fn for_tape(self, vary_lengths: bool, draws: u64) -> WorkloadArguments {
        WorkloadArguments { vary_lengths, draws, ..self }
    }

    /// The same workload, on a tape for a window of `window_ops` operations, if it does not say how long its tape is;
    /// at most `most`.
    pub fn for_window(self, window_ops: u64, most: u64) -> WorkloadArguments {
        WorkloadArguments { window: Some((window_ops, most)), ..self }
    }

    /// The tape of the workload. The schedule of an open loop is as long as `duration`.
    pub fn tape(&self, duration: Option<Duration>) -> Result<Vec<u8>, String> {
        let (bytes, imported) = self.tape_and_trace(duration)?;
        if let Some(trace) = imported {
            report_import(&trace, self.schedule);
        }
        Ok(bytes)
    }

    /// The tape of the workload, and what was imported, if it is a trace.
    pub fn tape_and_trace(
        &self,
        duration: Option<Duration>,
    ) -> Result<(Vec<u8>, Option<ImportedTrace>), String> {
        let seed = self.seed.unwrap_or(1);
        let mut imported = None;
        let made = match (&self.trace, self.schedule) {
            (Some(_), _) if self.vary_lengths || self.draws > 0 => {
                return Err(
                    "--vary-lengths, --draws: a trace has its own lengths and order".to_owned()
                );
            }
            (Some(path), _) => {
                let trace = import_file(path, &self.import_options())?;
                self.check_left_out(path, &trace)?;
                let replay = self.replay(duration).map_err(|error| error.to_string())?;
                // A trace begins with a cold cache.
                let prefill = self.prefill.unwrap_or(0.0);
                let compressibility = self.compressibility.unwrap_or(0.0);
                let made = trace.recording.tape(replay, prefill, compressibility, seed);
                imported = Some(trace);
                made
            }
            (None, Some(ScheduleName::Replay(_))) => {
                return Err("--schedule replay: name the trace with --trace".to_owned());
            }
            (None, _) => {
                let (workload, schedule) = self.plan(duration)?;
                generate(&workload, &schedule, seed)
            }
        };
        Ok((made.map_err(|error| error.to_string())?, imported))
    }

    fn import_options(&self) -> ImportOptions {
        ImportOptions {
            format: self.trace_format,
            columns: self.columns.clone(),
            gets: self.gets.map_or(Gets::AsLogged, Gets::from),
            max_ops: self.ops.unwrap_or(u64::MAX),
        }
    }

    /// Refuse a trace of which too little can be played.
    fn check_left_out(&self, path: &Path, trace: &ImportedTrace) -> Result<(), String> {
        let (share, most) = (trace.left_out_share(), self.left_out.unwrap_or(MOST_LEFT_OUT));
        if share <= most {
            return Ok(());
        }
        Err(format!(
            "{}: {:.1} % of its operations are left out ({}), and at most {:.1} % may be: what remains is another \
             workload; to play it all the same: --left-out {:.2}",
            path.display(),
            100.0 * share,
            trace.reasons(),
            100.0 * most,
            (100.0 * share).ceil() / 100.0
        ))
    }

    /// The workload and the schedule, if they are not recorded in a trace.
    pub fn plan(&self, duration: Option<Duration>) -> Result<(Workload, Schedule), String> {
        let workload = self.workload()?;
        let schedule = self.schedule(duration).map_err(|error| error.to_string())?;
        let schedule = match (schedule, self.ops, self.window) {
            (Schedule::Closed { think, .. }, None, Some((window_ops, most))) => {
                Schedule::Closed { ops: chosen_ops(&workload, window_ops, most), think }
            }
            _ => schedule,
        };
        Ok((workload, schedule))
    }

    /// Whether the workload is a recorded trace.
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some()
    }

    /// Refuse a run length if no operation has a run of keys.
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

    fn replay(&self, duration: Option<Duration>) -> Result<ReplaySchedule, WorkloadError> {
        match (self.schedule, self.rate) {
            (Some(ScheduleName::Replay(_)), Some(_)) => Err(WorkloadError(
                "--rate: a replay uses the trace's own times; --schedule poisson uses a rate"
                    .to_owned(),
            )),
            (Some(ScheduleName::Replay(_)), None) if self.think.is_some() => Err(WorkloadError(
                "--think: a replay uses the trace's own times; leave out one of the two".to_owned(),
            )),
            (Some(ScheduleName::Replay(speed)), None) => Ok(ReplaySchedule::Recorded { speed }),
            (None | Some(ScheduleName::Closed), None) => {
                let think = self.think.unwrap_or_default();
                Ok(ReplaySchedule::Schedule(Schedule::Closed { ops: u64::MAX, think }))
            }
            _ => self.schedule(duration).map(ReplaySchedule::Schedule),
        }
    }

    fn shape(&self) -> KeyShape {
        match &self.key_pattern {
            Some(pattern) => KeyShape::Pattern(pattern.clone()),
            None if !self.key_names.is_empty() => KeyShape::Names(self.key_names.clone()),
            None => {
                KeyShape::Length(self.key_length.clone().unwrap_or(IntegerDistribution::fixed(20)))
            }
        }
    }

    /// Add the preset's options where none are given. An option also replaces the preset's other options
    /// that have the same meaning.
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
            zipf: None,
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

    /// The schedule. A rate alone means Poisson arrivals.
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
                refuse("--rate: a closed loop has no rate; use --schedule uniform or poisson")
            }
            (ScheduleName::Replay(_), _, _) => refuse("--schedule replay needs a --trace"),
            _ if think != Think::None => refuse("--think: an open loop has no think time"),
            _ if self.ops.is_some() && !self.is_recorded() => refuse(
                "--ops: an open loop has as many operations as its rate and its duration give",
            ),
            (_, None, _) => refuse("an open loop needs --rate"),
            (_, _, None) => refuse("an open loop needs --duration"),
            (ScheduleName::Open(arrivals), Some(rate), Some(duration)) => {
                Ok(Schedule::Open { arrivals, rate, duration_ns: duration.as_nanos() as u64 })
            }
        }
    }
}

/// Print on stderr how the tape differs from the trace.
fn report_import(trace: &ImportedTrace, schedule: Option<ScheduleName>) {
    let say = |text: String| print_error(&format!("trace: {text}"));
    if !trace.left_out.is_empty() {
        let percent = 100.0 * trace.left_out_share();
        say(format!("left out {percent:.2} % of the operations: {}", trace.reasons()));
    }
    for (name, count) in &trace.other_lines {
        say(format!("{count} lines are no operations of clients: {name}"));
    }
    if !trace.unused_columns.is_empty() {
        say(format!("columns that were not used: {}", trace.unused_columns.join(", ")));
    }
    if trace.unfilled > 0 {
        say(format!(
            "{} gets do not fill the cache: no line says how large their values are",
            trace.unfilled
        ));
    }
    if matches!(schedule, Some(ScheduleName::Replay(_))) && trace.recording.has_whole_seconds() {
        say("its times are whole seconds; arrivals within each second are drawn at random".into());
    }
}
