//! The fitted workload: as the engine plays it, and as an experiment file.

use cachemark_tape::{
    Arrivals, IntegerDistribution, KeyShape, Schedule, Tape, Workload, generate, parse_mix, seconds,
};

const SEED: u64 = 1;
/// Shares that are closer are told as one.
const ALIKE: f64 = 1e-5;
/// The window of the experiment; longer traces are played in part.
const LONGEST_WINDOW_S: f64 = 600.0;

/// A workload in the words of an experiment.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FittedWorkload {
    /// Operations with their weights.
    pub mix: Vec<(String, f64)>,
    #[serde(flatten)]
    pub drawn: DrawnKeys,
    pub schedule: String,
    /// Operations a second; `None`: the trace has no times.
    pub rate: Option<f64>,
    pub duration_s: f64,
    pub operations: u64,
}

/// The keys, their properties, and how operations choose among them.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DrawnKeys {
    pub keys: u32,
    pub distribution: String,
    pub key_length: String,
    pub value_size: String,
    pub exptime_s: String,
}

impl DrawnKeys {
    /// All keys of several parts, with the shares of reads and of writes of each.
    pub fn of(parts: &[(DrawnKeys, f64, f64)]) -> DrawnKeys {
        let joined = |of: fn(&DrawnKeys) -> &String| {
            let texts: Vec<&str> = parts.iter().map(|(part, ..)| of(part).as_str()).collect();
            let is_one = texts.iter().all(|text| *text == texts[0]);
            if is_one { texts[0].to_owned() } else { texts.join(";") }
        };
        let law = |(part, reads, writes): &(DrawnKeys, f64, f64)| {
            let operations = if (reads - writes).abs() < ALIKE {
                format!("{reads:.5}")
            } else {
                format!("{reads:.5}/{writes:.5}")
            };
            format!("{}:{operations}:{}", part.keys, part.distribution)
        };
        DrawnKeys {
            keys: parts.iter().map(|(part, ..)| part.keys).sum(),
            distribution: parts.iter().map(law).collect::<Vec<_>>().join(";"),
            key_length: joined(|part| &part.key_length),
            value_size: joined(|part| &part.value_size),
            exptime_s: joined(|part| &part.exptime_s),
        }
    }
}

impl FittedWorkload {
    /// The tape that the experiment plays, as long as the trace.
    pub fn tape(&self) -> Result<Tape, String> {
        let said = |error: cachemark_tape::WorkloadError| error.to_string();
        let mix: Vec<String> =
            self.mix.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
        let workload = Workload {
            keys: self.drawn.keys,
            distribution: self.drawn.distribution.parse().map_err(said)?,
            shape: KeyShape::Length(self.drawn.key_length.parse().map_err(said)?),
            size: self.drawn.value_size.parse().map_err(said)?,
            mix: parse_mix(&mix.join(",")).map_err(said)?,
            prefill: 0.0,
            exptime_s: IntegerDistribution::parse(&self.drawn.exptime_s, seconds).map_err(said)?,
            ..Workload::default()
        };
        let schedule = match self.rate {
            None => Schedule::closed(self.operations),
            Some(rate) => Schedule::Open {
                arrivals: self.schedule.parse::<Arrivals>().map_err(said)?,
                rate,
                duration_ns: (self.duration_s * 1e9) as u64,
            },
        };
        let bytes = generate(&workload, &schedule, SEED).map_err(said)?;
        Tape::from_bytes(bytes).map_err(|error| error.to_string())
    }

    /// The experiment file.
    pub fn toml(&self) -> String {
        let mix: Vec<String> =
            self.mix.iter().map(|(name, weight)| format!("{name} = {weight}")).collect();
        let mix = mix.join(", ");
        let window_ms = (self.duration_s.min(LONGEST_WINDOW_S) * 1e3).ceil().max(1.0);
        let timing = match self.rate {
            Some(_) => format!("\n[timing]\nmeasure_ms = {window_ms}\n"),
            None => String::new(),
        };
        let records = match self.rate {
            Some(_) => String::new(),
            None => format!("records = {}\n", self.operations),
        };
        let rate = self.rate.map_or_else(String::new, |rate| format!("rate = {rate}\n"));
        let DrawnKeys { keys, distribution, key_length, value_size, exptime_s } = &self.drawn;
        let schedule = &self.schedule;
        format!(
            "# Made by `cachemark trace fit`. It draws keys of its own; none of the trace is here.\n\
             name = \"fitted-trace\"\n\
             question = \"How does a server behave with traffic like that of the trace?\"\n\
             clients = [\"native\"]\n\
             servers = [\"memcached\"]\n\
             {timing}\n\
             [[workloads]]\n\
             name = \"like-the-trace\"\n\
             mix = {{ {mix} }}\n\
             # A trace begins with a cold cache.\n\
             prefill = 0\n\
             exptime_s = \"{exptime_s}\"\n\
             {records}\n\
             [workloads.keys]\n\
             count = {keys}\n\
             distribution = \"{distribution}\"\n\
             length = \"{key_length}\"\n\n\
             [workloads.values]\n\
             size = \"{value_size}\"\n\n\
             [[loads]]\n\
             name = \"as-recorded\"\n\
             schedule = \"{schedule}\"\n\
             threads = 16\n\
             {rate}"
        )
    }
}
