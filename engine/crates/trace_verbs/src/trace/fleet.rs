//! `trace fleet`: how many servers a trace needs, and what happens when one of them is lost.

use std::path::{Path, PathBuf};

use cachemark_command::process::print_compact_json;
use cachemark_fleet::{
    Count, Demand, FleetPlay, KeyTraffic, MissCurve, Played, ServerKind, Setting, Traffic,
    count_servers,
};
use cachemark_miss_ratio::{Hottest, Plan, Policy, Population, Predictor, Request};
use cachemark_trace::file::Keys;
use cachemark_trace::{ReadTrace, each_record};

use super::fleet_file::{self, FleetFile};
use super::fleet_told;
use super::measured::MeasuredRates;
use super::planned_fleet::{Curve, PlannedFleet, ToldDemand};
use super::predict::leave_out;
use super::reading::Reading;
use super::tape_requests;

/// Rates are counted in windows of this number of seconds.
const WINDOW_S: u32 = 10;
const CURVE_SIZES: i32 = 40;
const PAGE_BYTES: u64 = 1 << 20;
/// The keys that are followed, for shares and curve, and in the play: all of them up to the last.
const FOLLOWED: f64 = 32_768.0;
const PLAYED: f64 = 65_536.0;
const PLAYED_OF_SERVER: f64 = 500.0;
const ALL_PLAYED: f64 = 262_144.0;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace, also .zst and .gz; or a tape
    trace: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// The file with the kinds of servers, and the behaviours of clients
    #[arg(long)]
    servers: PathBuf,
    /// The rates that a run measured, as JSON: for the kinds without a rate
    #[arg(long)]
    measured: Option<PathBuf>,
    /// The first part of the trace, which fills the caches and is not counted
    #[arg(long, value_parser = super::predict::part, default_value = "0.2")]
    warm_up: f64,
}

pub fn plan_fleet(arguments: &Arguments) -> Result<(), String> {
    let mut file = fleet_file::read(&arguments.servers)?;
    let mut rates = arguments.measured.as_deref().map(MeasuredRates::read).transpose()?;
    if let Some(rates) = &mut rates {
        rates.add_to(&mut file.kinds)?;
    }
    // Without a measured rate: as much as its threads can do.
    for kind in &mut file.kinds {
        kind.rate =
            kind.rate.or(kind.service_s.map(|service_s| f64::from(kind.threads) / service_s));
    }
    let place = |error: &str| format!("{}: {error}", arguments.trace.display());
    let (first, read) = First::read(&arguments.trace, &arguments.reading)?;
    let population = &first.population;
    if population.requests == 0 {
        return Err(place("it has no operations that a cache sees"));
    }
    let are_real = read.origin.keys == Keys::Plain && !file.addresses.is_empty();
    let trace_rate = first.rate().map(|rate| rate * f64::from(read.origin.sampled));
    let rate = file.peak_rate.or(trace_rate);
    let rate =
        rate.ok_or_else(|| place("it has no times: give `peak_rate` in the fleet's file"))?;
    let (keys, curve) = collected(arguments, population, read.origin.sampled)?;
    let demand = Demand {
        misses: file.hit_ratio.map(|ratio| 1.0 - ratio),
        requests_per_s: rate * file.growth,
        bytes_per_request: bytes_per_request(&keys),
        used_part: file.use_at_most,
        connections: file.connections,
    };
    let of_fractions = curve.iter().map(|(bytes, misses)| (*bytes as f64, *misses));
    let of_fractions = MissCurve::new(of_fractions);
    let ring = (file.placement, &file.addresses[..]);
    let count = |kinds: &[ServerKind]| {
        count_servers(kinds, &demand, &of_fractions, ring, (&keys, are_real))
    };
    let counts = count(&file.kinds);
    if let Some(rates) = &mut rates {
        rates.count_if_low(&file.kinds, count);
    }
    let chosen = chosen(&counts, &file);
    let played = match chosen.and_then(|place| counts[place].servers) {
        None => None,
        Some(servers) => {
            Some(played(arguments, &file, servers, population, &read, chosen, are_real)?)
        }
    };
    let figures = PlannedFleet {
        fleet_bytes: chosen
            .and_then(|place| Some(counts[place].servers? as u64 * counts[place].memory_bytes)),
        requests: population.requests,
        keys: population.keys * f64::from(read.origin.sampled),
        duration_s: first.last_ns as f64 / 1e9,
        are_real,
        ring: file.placement,
        demand: ToldDemand {
            hit_ratio: file.hit_ratio,
            trace_rate,
            requests_per_s: demand.requests_per_s,
            bytes_per_request: demand.bytes_per_request,
            used_part: file.use_at_most,
            growth: file.growth,
            connections: file.connections,
        },
        warm_up: arguments.warm_up,
        curve,
        counts,
        rates,
        chosen,
        played,
        gutter_servers: file.gutter_servers,
        gutter_ttl_s: file.gutter_ttl_s,
        origin: read.origin,
        summary: read.summary,
    };
    let name = arguments.trace.file_name().unwrap_or_default().to_string_lossy();
    print_compact_json(&fleet_told::told(&name, figures));
    Ok(())
}

/// The result of a first pass.
struct First {
    population: Population,
    last_ns: u64,
    /// Requests of the busiest window.
    busiest: u64,
}

impl First {
    fn read(path: &Path, reading: &Reading) -> Result<(First, ReadTrace), String> {
        let (mut hottest, mut last_ns) = (Hottest::default(), 0);
        let (mut window, mut in_window, mut busiest) = (0, 0, 0);
        let read = each_request(path, reading, |request, _, at_ns| {
            hottest.add(request);
            last_ns = at_ns;
            if request.at_s / WINDOW_S != window {
                (window, in_window) = (request.at_s / WINDOW_S, 0);
            }
            in_window += 1;
            busiest = in_window.max(busiest);
        })?;
        Ok((First { population: hottest.population(), last_ns, busiest }, read))
    }

    /// Requests a second of the busiest window; of the whole trace, if that is shorter.
    fn rate(&self) -> Option<f64> {
        let seconds = (self.last_ns as f64 / 1e9).min(f64::from(WINDOW_S));
        (self.last_ns > 0).then(|| self.busiest as f64 / seconds)
    }
}

/// The traffic of the followed keys, and the curve of LRU.
fn collected(
    arguments: &Arguments,
    population: &Population,
    sampled: u32,
) -> Result<(Vec<KeyTraffic>, Curve), String> {
    let part = (FOLLOWED / population.keys).min(1.0);
    let mut traffic = Traffic::new(part, population, sampled);
    let sizes = sizes(population.keys * population.mean_charged_bytes * f64::from(sampled));
    let plan = Plan {
        sizes: sizes.clone(),
        policies: vec![Policy::Lru],
        part,
        follows_enough: true,
        sampled,
        warm_up: arguments.warm_up,
    };
    let mut predictor = Predictor::new(plan, population.clone());
    each_request(&arguments.trace, &arguments.reading, |request, key, _| {
        traffic.add(request, key);
        predictor.play(request);
    })?;
    let prediction = predictor.prediction();
    let points = prediction.curves.iter().flat_map(|curve| &curve.points);
    let curve = points.filter_map(|point| Some((point.memory_bytes, point.misses?.value)));
    Ok((traffic.keys(), curve.collect()))
}

/// From a small part of what all items take to more than that, in whole pages.
fn sizes(all_bytes: f64) -> Vec<u64> {
    let most = (4.0 * all_bytes).max(4.0 * PAGE_BYTES as f64);
    let least = (most / 16_384.0).max(PAGE_BYTES as f64);
    let step = (most / least).powf(1.0 / f64::from(CURVE_SIZES - 1));
    let size =
        |place: i32| (least * step.powi(place) / PAGE_BYTES as f64).round() as u64 * PAGE_BYTES;
    let mut sizes: Vec<u64> = (0..CURVE_SIZES).map(size).collect();
    sizes.dedup();
    sizes
}

fn bytes_per_request(keys: &[KeyTraffic]) -> f64 {
    let sum = |of: fn(&KeyTraffic) -> f64| keys.iter().map(of).sum::<f64>();
    let bytes = sum(|key| key.sent_bytes).max(sum(|key| key.received_bytes));
    bytes / sum(|key| key.requests).max(1.0)
}

/// The kind of which there is a number; else the cheapest; else the one of which the fewest are needed.
fn chosen(counts: &[Count], file: &FleetFile) -> Option<usize> {
    let given = file.kinds.iter().position(|kind| kind.number.is_some());
    let known = || counts.iter().enumerate().filter(|(_, count)| count.servers.is_some());
    let has_prices = known().all(|(_, count)| count.price.is_some());
    let cost = |count: &Count| match count.price {
        Some(price) if has_prices => price,
        _ => count.servers.unwrap_or(usize::MAX) as f64,
    };
    let cheapest = known().min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other)));
    given.or(cheapest.map(|(place, _)| place))
}

fn played(
    arguments: &Arguments,
    file: &FleetFile,
    servers: usize,
    population: &Population,
    read: &ReadTrace,
    chosen: Option<usize>,
    are_real: bool,
) -> Result<Played, String> {
    let least = PLAYED.max(PLAYED_OF_SERVER * servers as f64);
    let all = population.keys <= ALL_PLAYED;
    let setting = Setting {
        placement: file.placement,
        addresses: file.addresses.clone(),
        servers,
        memory_bytes: chosen.map_or(0, |place| file.kinds[place].memory_bytes),
        part: if all { 1.0 } else { (least / population.keys).min(1.0) },
        sampled: read.origin.sampled,
        warm_up: arguments.warm_up,
        gutter_servers: file.gutter_servers,
        gutter_ttl_s: file.gutter_ttl_s,
    };
    let mut play = FleetPlay::new(setting, population);
    let draw = u32::from(!are_real);
    each_request(&arguments.trace, &arguments.reading, |request, key, _| {
        play.play(request, key, draw);
    })?;
    Ok(play.played())
}

/// Call `each` with every request that a cache sees, its key, and its time in ns.
fn each_request(
    path: &Path,
    reading: &Reading,
    mut each: impl FnMut(&Request, &[u8], u64),
) -> Result<ReadTrace, String> {
    if tape_requests::is_tape(path) {
        return tape_requests::each_request(path, each);
    }
    let mut others = 0;
    let mut read =
        each_record(path, &reading.options(), |record| match Request::of(record, 1.0) {
            Some(request) => {
                let at_ns = record.at_ns.unwrap_or(0);
                (0..record.count).for_each(|_| each(&request, record.key, at_ns));
            }
            None => others += u64::from(record.count),
        })?;
    leave_out(&mut read, others);
    Ok(read)
}
