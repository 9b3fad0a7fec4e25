//! All curves of a trace, in one pass over its requests.

use serde::Serialize;

use crate::choice::Choice;
use crate::embedded::Embedded;
use crate::fills::{FillCounts, Fills, Step};
use crate::hottest::Population;
use crate::lasting::{LastingItems, LastingKeys};
use crate::lru_curve::LruCurve;
use crate::memcached::{Memcached, Release};
use crate::request::{Operation, Request};
use crate::reuse::Reuse;
use crate::tally::{ByTimes, Followed, Ratio, Tally};

/// A simulated store of the embedded server holds real bytes: at most this number. With fewer than the least, its needs
/// besides items would be too much of it.
const MOST_STORED_BYTES: f64 = (32 << 20) as f64;
const LEAST_STORED_BYTES: f64 = (8 << 20) as f64;
/// With a part of the keys, slab classes have room for few items, and pages move at other times. With half of this memory
/// for the part, misses were 0.8 points off, with a quarter 3, with less up to 11: more than the standard error says.
const LEAST_MEMCACHED_BYTES: f64 = (100 << 20) as f64;
/// The keys of a part share one small cache: what it has too much of makes all groups of keys miss more or less. So the
/// error is this number of times the error that the groups' differences show (`--bench accuracy -- policies`).
const SHARED_ERROR: f64 = 1.5;
/// Requests that are played together.
const BATCH: usize = 64;
/// More than any trace can use.
const ANY_MEMORY: u64 = u64::MAX;

/// The rule that decides which item gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The least recently used item of all, without classes.
    Lru,
    /// Since 1.6.34.
    Memcached,
    #[serde(rename = "memcached-1.6.33")]
    Memcached1633,
    /// The embedded server: S3-FIFO.
    Embedded,
}

impl Policy {
    pub const ALL: [Policy; 4] =
        [Policy::Memcached, Policy::Memcached1633, Policy::Embedded, Policy::Lru];

    /// Of memcached.
    fn release(self) -> Option<Release> {
        match self {
            Policy::Memcached => Some(Release::Since1634),
            Policy::Memcached1633 => Some(Release::Before1634),
            Policy::Lru | Policy::Embedded => None,
        }
    }
}

/// The plan of a prediction.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In bytes, the smallest first.
    pub sizes: Vec<u64>,
    pub policies: Vec<Policy>,
    /// The part of the trace's keys to follow, besides the hottest: 1 is exact.
    pub part: f64,
    /// Follow more keys where a figure needs them, instead of withholding it.
    pub follows_enough: bool,
    /// The trace has one key of `sampled`.
    pub sampled: u32,
    /// Requests of this part of the trace, its first, fill the caches and are not counted.
    pub warm_up: f64,
}

/// A size of memory, and the part of reads, and of their bytes, that misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    pub memory_bytes: u64,
    /// The part of the keys that was followed, besides the hottest.
    pub part: f64,
    /// The least part for this size and policy. Misses are `None` if the part is less.
    pub least_part: f64,
    pub misses: Option<Ratio>,
    pub byte_misses: Option<Ratio>,
}

/// A policy at all sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    pub policy: Policy,
    pub points: Vec<Point>,
}

/// The result of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub requests: u64,
    /// Reads that were counted.
    pub reads: u64,
    /// Of these: what the trace itself says, where it does.
    pub recorded_hits: u64,
    pub recorded_misses: u64,
    /// About how many keys there are, and how many of the hottest were all followed.
    pub keys: f64,
    pub hot_keys: usize,
    pub fills: FillCounts,
    /// Reads that LRU misses with any memory: of keys that came for the first time, or had expired. `None` without LRU.
    pub least_misses: Option<Ratio>,
    pub curves: Vec<Curve>,
}

/// Predicts.
pub struct Predictor {
    plan: Plan,
    population: Population,
    /// Whom any policy follows.
    widest: Choice,
    fills: Fills,
    lasting: LastingKeys,
    /// Requests that wait for a batch, and whether they count.
    waiting: Vec<(Request, bool)>,
    lru_choice: Choice,
    lru: Option<LruCurve>,
    reuse: Option<Reuse>,
    /// The sizes of memory, without the keys that last; the last one is any memory.
    rooms: Vec<u64>,
    simulations: Vec<Simulation>,
    seen: u64,
    first_counted: u64,
    reads: u64,
    recorded_hits: u64,
    recorded_misses: u64,
}

impl Predictor {
    /// A predictor for a trace with this population.
    pub fn new(plan: Plan, mut population: Population) -> Predictor {
        let lru_choice = Choice::new(plan.part, &population.hot, &population.requests_at);
        let simulated = plan.policies.iter().filter(|policy| **policy != Policy::Lru);
        let simulations: Vec<Simulation> = simulated
            .flat_map(|policy| plan.sizes.iter().map(|size| (*policy, *size)))
            .map(|(policy, size)| Simulation::new(policy, size, &plan, &population))
            .collect();
        let parts = simulations.iter().map(|simulation| simulation.choice.part());
        let widest =
            Choice::new(parts.fold(plan.part, f64::max), &population.hot, &population.requests_at);
        let of_trace = |size: &u64| size / u64::from(plan.sampled);
        let smallest = plan.sizes.first().map_or(0, of_trace) as f64;
        // A cache that follows all keys plays the hottest as any other.
        let lasting = if widest.part() < 1.0 { population.lasting(smallest) } else { Vec::new() };
        let lasting_keys = lasting.len();
        let lasting = LastingKeys::new(&lasting);
        let room = |size: &u64| of_trace(size).saturating_sub(lasting.bytes);
        let sizes: Vec<u64> = plan.sizes.iter().map(room).chain([ANY_MEMORY]).collect();
        let has_lru = plan.policies.contains(&Policy::Lru);
        // Some more, as the number of keys is an estimate.
        let followed = |part: f64| match part < 1.0 {
            true => (1.05 * part * population.keys) as usize + population.hot.len(),
            false => 0,
        };
        let fills = Fills::for_keys(followed(widest.part()));
        let lru = has_lru.then(|| LruCurve::for_keys(&sizes, followed(lru_choice.part())));
        let reuse = match has_lru && plan.sampled == 1 {
            true => Reuse::new(plan.part, &population, lasting_keys),
            false => None,
        };
        // Each choice has what it needs of them.
        population.requests_at = Vec::new();
        Predictor {
            reuse,
            rooms: sizes,
            first_counted: (population.requests as f64 * plan.warm_up) as u64,
            plan,
            population,
            widest,
            lru_choice,
            fills,
            lasting,
            waiting: Vec::with_capacity(BATCH),
            lru,
            simulations,
            seen: 0,
            reads: 0,
            recorded_hits: 0,
            recorded_misses: 0,
        }
    }

    /// The next request of the trace.
    #[inline]
    pub fn play(&mut self, request: &Request) {
        let counts = self.seen >= self.first_counted;
        self.seen += 1;
        if counts && request.operation == Operation::Get {
            self.reads += 1;
            self.recorded_hits += u64::from(request.succeeded == Some(true));
            self.recorded_misses += u64::from(request.succeeded == Some(false));
        }
        let hot = self.widest.hot_number(request.hash);
        if let Some(number) = hot.filter(|number| self.lasting.has(*number)) {
            self.lasting.play(number, request, &mut self.fills.counts, counts);
            return;
        }
        if let Some(reuse) = &mut self.reuse
            && reuse.takes(request.hash)
            && self.lru_choice.hot_number(request.hash).is_none()
        {
            reuse.note(request, self.seen, counts, &self.lru_choice);
        }
        match hot {
            None if !self.widest.takes(request.hash) => {}
            _ => {
                self.waiting.push((*request, counts));
                if self.waiting.len() == BATCH {
                    self.play_waiting();
                }
            }
        }
    }

    #[inline(never)]
    fn play_waiting(&mut self) {
        self.fills.approach(self.waiting.iter().map(|(request, _)| request.hash));
        let fills = &mut self.fills;
        let step = |(request, counts): (Request, bool)| Some((fills.step(&request)?, counts));
        let steps: Vec<(Step, bool)> = self.waiting.drain(..).filter_map(step).collect();
        if let Some(lru) = &mut self.lru {
            lru.approach(steps.iter().map(|(step, _)| step.number));
            for (step, counts) in &steps {
                if let Some(stand) = self.lru_choice.follows(step.hash) {
                    lru.play(step.number, step, stand, *counts);
                }
            }
        }
        for simulation in &mut self.simulations {
            steps.iter().for_each(|(step, counts)| simulation.play(step, *counts));
        }
    }

    /// The result so far.
    pub fn prediction(&mut self) -> Prediction {
        self.play_waiting();
        let all = |tally: Tally| tally.with_hot(&self.lasting.tally);
        let by_times = self
            .reuse
            .as_mut()
            .map_or(Vec::new(), |reuse| reuse.by_times(&self.rooms, self.seen, &self.lru_choice));
        let curve = |policy: &Policy| match (policy, &self.lru) {
            (Policy::Lru, Some(lru)) => {
                let times = by_times.iter().copied().map(Some).chain(std::iter::repeat(None));
                let part = self.lru_choice.part();
                let tallies = lru.tallies().into_iter().zip(times);
                self.curve(*policy, tallies.map(|(tally, times)| (part, all(tally), times)))
            }
            _ => {
                let own = self.simulations.iter().filter(|simulation| simulation.policy == *policy);
                self.curve(*policy, own.map(|each| (each.choice.part(), all(each.tally), None)))
            }
        };
        let of_any = by_times.last();
        let least_misses = |lru: &LruCurve| {
            let tally = all(lru.tallies().pop()?);
            Some(self.miss_ratio(&tally, self.followed(self.lru_choice.part()), of_any))
        };
        Prediction {
            least_misses: self.lru.as_ref().and_then(least_misses),
            requests: self.seen,
            reads: self.reads,
            recorded_hits: self.recorded_hits,
            recorded_misses: self.recorded_misses,
            keys: self.population.keys,
            hot_keys: self.lru_choice.hot_keys(),
            fills: self.fills.counts,
            curves: self.plan.policies.iter().map(curve).collect(),
        }
    }

    /// The least part of the trace's keys that shows a size of memory; above 1 if the trace itself has too few keys.
    fn least_part(&self, policy: Policy, memory_bytes: u64) -> f64 {
        let sampled = f64::from(self.plan.sampled);
        let least = LEAST_MEMCACHED_BYTES / memory_bytes as f64;
        match policy.release() {
            // All keys are no part, however small the memory is.
            Some(_) if sampled == 1.0 => least.min(1.0),
            Some(_) => least * sampled,
            None => 0.0,
        }
    }

    fn followed(&self, part: f64) -> Followed {
        Followed { part, of_all_keys: self.plan.sampled == 1 }
    }

    fn miss_ratio(&self, tally: &Tally, followed: Followed, times: Option<&ByTimes>) -> Ratio {
        tally.miss_ratio_with((self.reads, tally.reads().0), followed, times)
    }

    fn curve(
        &self,
        policy: Policy,
        tallies: impl Iterator<Item = (f64, Tally, Option<ByTimes>)>,
    ) -> Curve {
        let errors = if policy == Policy::Lru { 1.0 } else { SHARED_ERROR };
        let point = |(size, (part, tally, times)): (&u64, (f64, Tally, Option<ByTimes>))| {
            let least_part = self.least_part(policy, *size);
            let shows = |Ratio { value, error }| {
                (part >= least_part).then_some(Ratio { value, error: errors * error })
            };
            let followed = self.followed(part);
            Point {
                memory_bytes: *size,
                part,
                least_part,
                misses: shows(self.miss_ratio(&tally, followed, times.as_ref())),
                byte_misses: shows(tally.byte_miss_ratio(followed)),
            }
        };
        Curve { policy, points: self.plan.sizes.iter().zip(tallies).map(point).collect() }
    }
}

/// A cache of one size, with a part of the keys and as much less memory (miniature simulation; Waldspurger et al. 2017).
struct Simulation {
    policy: Policy,
    choice: Choice,
    cache: Cache,
    hot: LastingItems,
    tally: Tally,
}

enum Cache {
    Memcached(Box<Memcached>),
    Embedded(Box<Embedded>),
}

impl Simulation {
    fn new(policy: Policy, memory_bytes: u64, plan: &Plan, population: &Population) -> Simulation {
        // The share of the trace's own keys in the memory.
        let memory = memory_bytes as f64 / f64::from(plan.sampled);
        let part = match policy {
            Policy::Embedded => stored_part(plan.part, memory, population),
            _ if policy.release().is_some() && plan.follows_enough => {
                plan.part.max(LEAST_MEMCACHED_BYTES / memory).min(1.0)
            }
            _ => plan.part,
        };
        let hot = population.lasting(memory);
        let choice = Choice::new(part, &hot, &population.requests_at);
        // The hottest keys are not in the miniature. They have their room first.
        let hot_bytes: u64 = hot.iter().map(|key| u64::from(key.charged_bytes)).sum();
        let is_miniature = choice.part() < 1.0;
        let taken = hot_bytes.saturating_mul(u64::from(plan.sampled)).min(memory_bytes / 2);
        let left = memory_bytes - if is_miniature { taken } else { 0 };
        let of_memory = choice.part() / f64::from(plan.sampled);
        let cache = match policy.release() {
            None => Cache::Embedded(Box::new(Embedded::new(left, of_memory))),
            Some(release) => Cache::Memcached(Box::new(Memcached::new(release, left, of_memory))),
        };
        Simulation { policy, choice, cache, hot: LastingItems::default(), tally: Tally::default() }
    }

    fn play(&mut self, step: &Step, counts: bool) {
        let Some(stand) = self.choice.follows(step.hash) else { return };
        let hit = match (&mut self.cache, stand.is_hot) {
            (_, true) => self.hot.play(step),
            (Cache::Memcached(cache), false) => cache.play(step),
            (Cache::Embedded(cache), false) => cache.play(step),
        };
        if let Some(hit) = hit.filter(|_| counts) {
            self.tally.count(step.hash, stand, !hit, step.value_bytes);
        }
    }
}

/// The part of the keys for a store whose bytes are real.
fn stored_part(part: f64, memory: f64, population: &Population) -> f64 {
    let held = memory.min(population.keys * population.mean_charged_bytes).max(1.0);
    part.max(LEAST_STORED_BYTES / memory).min(MOST_STORED_BYTES / held).min(1.0)
}
