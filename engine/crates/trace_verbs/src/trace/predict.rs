//! `trace predict`: how many reads of a trace miss, with more or less memory.

use std::path::{Path, PathBuf};

use cachemark_command::process::print_compact_json;
use cachemark_command::units;
use cachemark_miss_ratio::{
    HeldItems, Hottest, Plan, Policy, Population, Prediction, Predictor, Request,
};
use cachemark_trace::file::{Origin, Record, Summary};
use cachemark_trace::{ITEM, ReadTrace, each_record};
use serde::Serialize;

use super::predict_told::{self, About};
use super::reading::Reading;
use super::snapshot;
use super::told::Told;

/// This number of keys are all followed, of more a number that a memory of a few MB can hold, with the hottest.
const ALL_KEYS: f64 = 65_536.0;
const FOLLOWED_KEYS: f64 = 32_768.0;
/// With fewer, the error of a figure would be as large as the figure.
const LEAST_FOLLOWED: f64 = 1000.0;
const MOST_SIZES: usize = 63;
const SIZES_OF_RANGE: u32 = 10;
const PAGE_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace; also .zst and .gz
    trace: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Sizes of memory: 64m,256m,1g or 64m..4g, which is ten sizes
    #[arg(long, value_parser = sizes)]
    memory: Sizes,
    /// memcached, memcached-1.6.33 (and before), embedded or lru, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = policy, default_value = "memcached,embedded,lru")]
    policies: Vec<Policy>,
    /// The keys to follow: 1/100, all or auto, which is as many as fit into little memory, and more for memcached
    #[arg(long, value_parser = sample, default_value = "auto")]
    sample: Sample,
    /// The first part of the trace that fills the caches and is not counted
    #[arg(long, value_parser = part, default_value = "0.2")]
    warm_up: f64,
    /// Predict the trace as played this number of times as fast, with expiry times as much shorter
    #[arg(long, value_parser = units::rate, default_value = "1")]
    speed: f64,
}

#[derive(Clone)]
struct Sizes(Vec<u64>);

#[derive(Clone, Copy)]
enum Sample {
    Auto,
    Part(f64),
}

fn sample(text: &str) -> Result<Sample, String> {
    match text {
        "auto" => Ok(Sample::Auto),
        "all" => Ok(Sample::Part(1.0)),
        _ => units::fraction(text).map(|one_of| Sample::Part(1.0 / f64::from(one_of))),
    }
}

pub(super) fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=0.9).contains(part));
    part.ok_or_else(|| format!("{text:?}: a part from 0 to 0.9 is needed"))
}

fn policy(text: &str) -> Result<Policy, String> {
    match text {
        "lru" => Ok(Policy::Lru),
        "memcached" => Ok(Policy::Memcached),
        "memcached-1.6.33" => Ok(Policy::Memcached1633),
        "embedded" => Ok(Policy::Embedded),
        _ => Err(format!("{text:?}: memcached, memcached-1.6.33, embedded or lru")),
    }
}

/// Sizes in bytes, the smallest first: whole MiB.
fn sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = match text.split_once("..") {
        None => text.split(',').map(units::bytes).collect::<Result<Vec<u64>, String>>()?,
        Some((least, most)) => {
            let (least, most) = (units::bytes(least)?, units::bytes(most)?);
            let step = (most as f64 / least as f64).powf(1.0 / f64::from(SIZES_OF_RANGE - 1));
            let size = |place: u32| least as f64 * step.powi(place as i32);
            (0..SIZES_OF_RANGE).map(|place| whole_pages(size(place))).collect()
        }
    };
    sizes.sort_unstable();
    sizes.dedup();
    let fits = |size: &u64| *size > 0 && size.is_multiple_of(PAGE_BYTES);
    if sizes.iter().all(fits) && sizes.len() <= MOST_SIZES {
        return Ok(Sizes(sizes));
    }
    Err(format!("{text:?}: 1 to {MOST_SIZES} sizes of whole MiB are needed, such as 64m,1g"))
}

fn whole_pages(bytes: f64) -> u64 {
    (bytes / PAGE_BYTES as f64).round() as u64 * PAGE_BYTES
}

/// A trace, and the prediction from it.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "trace")]
struct Predicted {
    format: &'static str,
    origin: Origin,
    summary: Summary,
    /// Of the trace, as it was recorded.
    duration_s: f64,
    speed: f64,
    warm_up: f64,
    words: Told<()>,
    prediction: Prediction,
}

pub fn predict(arguments: &Arguments) -> Result<(), String> {
    let (speed, warm_up) = (arguments.speed, arguments.warm_up);
    let (mut hottest, mut last_ns, mut items) = (Hottest::default(), 0, HeldItems::default());
    let mut others = 0;
    let mut read = each_record(&arguments.trace, &arguments.reading.options(), |record| {
        if record.operation == ITEM {
            items.add(record);
        }
        let is_request = requests_of(record, speed, |request, at_ns| {
            hottest.add(request);
            last_ns = at_ns;
        });
        others += u64::from(record.count) * u64::from(!is_request);
    })?;
    let name = arguments.trace.file_name().unwrap_or_default().to_string_lossy();
    if !items.is_empty() {
        print_compact_json(&snapshot::told(&name, read, items, &arguments.memory.0)?);
        return Ok(());
    }
    leave_out(&mut read, others);
    let (population, duration_s) = (hottest.population(), last_ns as f64 / 1e9);
    if population.requests == 0 {
        return Err(format!("{}: it has no operations", arguments.trace.display()));
    }
    if population.mean_charged_bytes == 0.0 {
        let remedy = "a prediction needs the sizes of values";
        return Err(format!("{}: no operation has a size: {remedy}", arguments.trace.display()));
    }
    let plan = Plan {
        sizes: arguments.memory.0.clone(),
        policies: once(&arguments.policies),
        part: part_of(arguments.sample, &population)?,
        follows_enough: matches!(arguments.sample, Sample::Auto),
        sampled: read.origin.sampled,
        warm_up,
    };
    let mut predictor = Predictor::new(plan, population);
    requests(&arguments.trace, &arguments.reading, speed, |request, _| predictor.play(request))?;
    let prediction = predictor.prediction();
    if prediction.reads == 0 {
        let counted = format!("after its first {} % it has no get", 100.0 * warm_up);
        return Err(format!("{}: {counted}: nothing can miss", arguments.trace.display()));
    }
    let (origin, summary) = (&read.origin, &read.summary);
    let about = About { name: &name, origin, summary, has_times: duration_s > 0.0, warm_up };
    let words = predict_told::told(&prediction, &about);
    print_compact_json(&Predicted {
        format: read.format,
        origin: read.origin,
        summary: read.summary,
        duration_s,
        speed,
        warm_up,
        words,
        prediction,
    });
    Ok(())
}

/// The policies in their order, each once.
fn once(policies: &[Policy]) -> Vec<Policy> {
    let is_first = |(place, policy): &(usize, &Policy)| !policies[..*place].contains(policy);
    policies.iter().enumerate().filter(is_first).map(|(_, policy)| *policy).collect()
}

fn part_of(sample: Sample, population: &Population) -> Result<f64, String> {
    let part = match sample {
        Sample::Part(part) => part,
        Sample::Auto if population.keys <= ALL_KEYS => 1.0,
        Sample::Auto => (FOLLOWED_KEYS - population.hot.len() as f64) / population.keys,
    };
    let followed = part * population.keys;
    if part < 1.0 && followed < LEAST_FOLLOWED {
        let found = format!("it would follow about {followed:.0} of {:.0} keys", population.keys);
        return Err(format!("--sample: {found}, and {LEAST_FOLLOWED:.0} are the least; try auto"));
    }
    Ok(part)
}

/// Call `each` with every request that is simulated, and its time in the trace.
fn requests(
    path: &Path,
    reading: &Reading,
    speed: f64,
    mut each: impl FnMut(&Request, u64),
) -> Result<ReadTrace, String> {
    each_record(path, &reading.options(), |record| {
        requests_of(record, speed, &mut each);
    })
}

/// False if the operation is not simulated.
fn requests_of(record: &Record<'_>, speed: f64, mut each: impl FnMut(&Request, u64)) -> bool {
    let request = Request::of(record, speed);
    if let Some(request) = &request {
        (0..record.count).for_each(|_| each(request, record.at_ns.unwrap_or(0)));
    }
    request.is_some()
}

/// Note this number of operations that are in the trace and are not simulated.
pub(super) fn leave_out(read: &mut ReadTrace, others: u64) {
    if others > 0 {
        read.summary.left_out.insert("operations that are not simulated".to_owned(), others);
    }
}
