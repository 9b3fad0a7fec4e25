//! The facts of a trace for a fit: its requests without their keys, and facts of each key.

use std::collections::{BTreeMap, HashMap};

use cachemark_miss_ratio::{Fills, NO_SIZE, Operation, Request, Task};
use cachemark_trace::file::Record;
use cachemark_trace_statistics::{Collector, TraceStatistics};
use foldhash::fast::FixedState;

/// Further requests of a trace are not looked at.
pub const MOST_REQUESTS: usize = 3_000_000;
/// `Collector` tells of keys what is not needed here.
const COUNTED_KEYS: usize = 1 << 12;

/// A request, when it came, and whether a miss before it caused it.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub at_ns: u64,
    pub is_fill: bool,
    pub request: Request,
}

impl Kept {
    /// Whether a tape draws its key as that of a write.
    pub fn stores(&self) -> bool {
        matches!(self.request.operation, Operation::Set | Operation::Update | Operation::Add)
    }
}

/// The known facts of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyFacts {
    /// Its requests without fills.
    pub requests: u32,
    pub key_bytes: u8,
    pub value_bytes: Option<u32>,
    /// The expiry time that its last store gave, or that a tape has for it.
    pub ttl_s: Option<u32>,
    /// The place of its first request among all.
    pub first: usize,
    /// The place of its last one.
    pub last: usize,
}

/// Requests in their order.
#[derive(Default)]
pub struct Collected {
    pub requests: Vec<Kept>,
    pub keys: HashMap<u64, KeyFacts, FixedState>,
    /// Operations without fills, by their names.
    pub operations: BTreeMap<String, u64>,
    pub fills: u64,
    /// Reads of which the trace says that they missed.
    pub missed: u64,
    /// Operations that a simulation has no use for.
    pub unknown: BTreeMap<String, u64>,
    /// Keys that were read together with others.
    pub joined: u64,
    pub has_times: bool,
    /// Requests behind the most that are looked at.
    pub left: u64,
    rule: Fills,
    statistics: Option<Collector>,
}

impl Collected {
    pub fn new() -> Collected {
        Collected { statistics: Some(Collector::new(COUNTED_KEYS)), ..Collected::default() }
    }

    /// Add the next record of the trace.
    pub fn add(&mut self, record: &Record<'_>) {
        if self.requests.len() >= MOST_REQUESTS {
            self.left += u64::from(record.count);
            return;
        }
        let Some(request) = Request::of(record, 1.0) else {
            let count = self.unknown.entry(record.operation.to_owned()).or_default();
            *count += u64::from(record.count);
            return;
        };
        self.has_times |= record.at_ns.is_some_and(|at_ns| at_ns > 0);
        self.joined += u64::from(record.joined);
        let mut played = 0;
        for _ in 0..record.count {
            let is_fill = self.request(record.at_ns.unwrap_or(0), request);
            played += u32::from(!is_fill);
        }
        if played > 0 {
            *self.operations.entry(record.operation.to_owned()).or_default() += u64::from(played);
            if let Some(statistics) = &mut self.statistics {
                statistics.add(&Record { count: played, ..*record });
            }
        }
    }

    /// Add a request. Whether it is a fill.
    pub fn request(&mut self, at_ns: u64, request: Request) -> bool {
        let step = self.rule.step(&request);
        let fills = request.operation == Operation::Set
            && step.is_some_and(|step| matches!(step.task, Task::Add(_)));
        self.fills += u64::from(fills);
        let missed = request.operation == Operation::Get && request.succeeded == Some(false);
        self.missed += u64::from(missed);
        let facts = self.keys.entry(request.hash).or_insert(KeyFacts {
            requests: 0,
            key_bytes: request.key_bytes,
            value_bytes: None,
            ttl_s: None,
            first: self.requests.len(),
            last: 0,
        });
        facts.last = self.requests.len();
        facts.requests += u32::from(!fills);
        facts.value_bytes = step.and_then(|step| step.value_bytes).or(facts.value_bytes);
        let stores = matches!(
            request.operation,
            Operation::Set | Operation::Update | Operation::Add | Operation::Replace
        );
        if stores || request.ttl_s > 0 {
            facts.ttl_s = Some(request.ttl_s);
        }
        self.requests.push(Kept { at_ns, is_fill: fills, request });
        fills
    }

    /// The requests of these keys.
    pub fn of_keys(&self, hashes: &[u64]) -> Collected {
        let facts = |hash: &u64| Some((*hash, *self.keys.get(hash)?));
        let keys: HashMap<u64, KeyFacts, FixedState> = hashes.iter().filter_map(facts).collect();
        let is_of_key = |kept: &&Kept| keys.contains_key(&kept.request.hash);
        let requests = self.requests.iter().filter(is_of_key).copied().collect();
        Collected { requests, keys, has_times: self.has_times, ..Collected::default() }
    }

    /// Played requests that read, and those that store.
    pub fn reads_and_writes(&self) -> (u64, u64) {
        let writes = self.played().filter(|kept| kept.stores()).count() as u64;
        (self.played().count() as u64 - writes, writes)
    }

    /// The statistics of the requests without fills, once.
    pub fn statistics(&mut self) -> Option<TraceStatistics> {
        self.statistics.take().map(Collector::finish)
    }

    /// Requests without fills.
    pub fn played(&self) -> impl Iterator<Item = &Kept> {
        self.requests.iter().filter(|kept| !kept.is_fill)
    }

    pub fn duration_s(&self) -> f64 {
        self.requests.last().map_or(0.0, |last| last.at_ns as f64 / 1e9)
    }

    /// The size that a request has, or its key.
    pub fn size_of(&self, kept: &Kept) -> Option<u32> {
        let own = Some(kept.request.value_bytes).filter(|bytes| *bytes != NO_SIZE);
        self.keys.get(&kept.request.hash).and_then(|facts| facts.value_bytes).or(own)
    }

    /// Of all keys, the part whose first request is in the second half.
    pub fn late_keys(&self) -> f64 {
        let half = self.requests.len() / 2;
        let late = self.keys.values().filter(|facts| facts.first >= half).count();
        late as f64 / self.keys.len().max(1) as f64
    }

    /// Of all keys, the part with one request.
    pub fn once(&self) -> f64 {
        let once = self.keys.values().filter(|facts| facts.requests <= 1).count();
        once as f64 / self.keys.len().max(1) as f64
    }
}
