//! Plays a trace through a fleet of simulated servers. In the middle, one server is lost, and the same requests are played
//! on in four ways beside each other.

use std::collections::{HashMap, HashSet};

use cachemark_miss_ratio::{
    Choice, Fill, Fills, Followed, LruCurve, Memcached, Operation, Population, Ratio, Release,
    Request, Stand, Step, Tally, Task,
};
use foldhash::fast::FixedState;
use serde::Serialize;

use crate::count::{hottest, names};
use crate::ring::{Placement, Ring};

/// For so long after the loss, requests are counted.
const MINUTE_S: u32 = 60;

/// The setting of a play.
#[derive(Clone, Debug)]
pub struct Setting {
    pub placement: Placement,
    /// The names of the clients' servers; others take their place if there are not as many.
    pub addresses: Vec<String>,
    pub servers: usize,
    /// Of each server.
    pub memory_bytes: u64,
    /// Follow this part of the keys, and the hottest.
    pub part: f64,
    /// The trace has one key of `sampled`.
    pub sampled: u32,
    /// The first part of the trace, which is not counted.
    pub warm_up: f64,
    /// Servers that take over from a lost one, and for how long they hold an item at most.
    pub gutter_servers: usize,
    pub gutter_ttl_s: u32,
}

/// The results of the same requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    pub misses: Ratio,
    /// The part of the requests that each server got, until the last one with a request. Behind the fleet are the
    /// servers of the gutter pool.
    pub parts: Vec<f64>,
    /// The largest part of the requests that one server got, as a multiple of the mean of all servers before the loss.
    pub hottest: f64,
}

/// The clients' treatment of the keys of a lost server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LossCase {
    /// No server is lost.
    Nothing,
    /// Each request fails.
    Failing,
    /// They take the server out of their list.
    Dropped,
    /// They ask the servers of the gutter pool.
    Gutter,
}

/// The time after the loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// The server that was lost, which had the most requests, and its part of them.
    pub server: usize,
    pub part: f64,
    /// For how long the requests after it were counted, and how many reads a second there were.
    pub seconds: u32,
    pub reads_per_s: f64,
    pub cases: Vec<(LossCase, Period)>,
}

/// The result of a play.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Played {
    pub servers: usize,
    /// Whether servers are simulated with memcached's policy; else with LRU, as only a part of the keys is followed.
    pub is_memcached: bool,
    pub part: f64,
    pub reads: u64,
    /// From the warm-up to the loss.
    pub before: Period,
    /// Of those that were followed.
    pub keys_of_server: Vec<usize>,
    /// `None`: the trace has no times, or ends before.
    pub loss: Option<Loss>,
}

#[derive(Clone)]
enum Server {
    Memcached(Box<Memcached>),
    /// With a number for each of its keys.
    Lru(Box<LruCurve>, HashMap<u64, u32, FixedState>),
}

impl Server {
    fn new(setting: &Setting, part: f64) -> Server {
        let of_trace = setting.memory_bytes / u64::from(setting.sampled);
        if part >= 1.0 && setting.sampled == 1 {
            Server::Memcached(Box::new(Memcached::new(
                Release::Since1634,
                setting.memory_bytes,
                1.0,
            )))
        } else {
            Server::Lru(Box::new(LruCurve::new(&[of_trace])), HashMap::default())
        }
    }

    /// `Some(hit)` for a get.
    fn play(&mut self, step: &Step, stand: Stand) -> Option<bool> {
        match self {
            Server::Memcached(server) => server.play(step),
            Server::Lru(server, numbers) => {
                let next = numbers.len() as u32;
                let number = *numbers.entry(step.hash).or_insert(next);
                server.play(number, step, stand, false)
            }
        }
    }
}

/// Reads of a period, and the requests of each server.
#[derive(Clone, Default)]
struct Sums {
    tally: Tally,
    requests: Vec<f64>,
}

impl Sums {
    fn add(&mut self, step: &Step, stand: Stand, server: Option<usize>, hit: Option<bool>) {
        if let Some(hit) = hit {
            self.tally.count(step.hash, stand, !hit, None);
        }
        if let Some(server) = server {
            if self.requests.len() <= server {
                self.requests.resize(server + 1, 0.0);
            }
            self.requests[server] += stand.keys();
        }
    }

    fn all(&self) -> f64 {
        self.requests.iter().sum()
    }

    /// `reads`: all of the period; `all`: requests, of which each of `servers` has its part.
    fn period(&self, reads: u64, (all, servers): (f64, usize), followed: Followed) -> Period {
        let most = self.requests.iter().copied().fold(0.0, f64::max);
        let answered = self.all();
        Period {
            misses: self.tally.miss_ratio((reads, self.tally.reads().0), followed),
            parts: self.requests.iter().map(|requests| requests / answered).collect(),
            hottest: if all > 0.0 { most * servers as f64 / all } else { 0.0 },
        }
    }
}

/// The state after the loss.
struct Lost {
    server: usize,
    at_s: u32,
    last_s: u32,
    reads: u64,
    dropped_ring: Ring,
    dropped: Vec<Server>,
    gutter: Option<(Ring, Vec<Server>)>,
    sums: [Sums; 4],
}

const CASES: [LossCase; 4] =
    [LossCase::Nothing, LossCase::Failing, LossCase::Dropped, LossCase::Gutter];

/// Plays.
pub struct FleetPlay {
    setting: Setting,
    names: Vec<String>,
    choice: Choice,
    fills: Fills,
    ring: Ring,
    servers: Vec<Server>,
    keys: Vec<HashSet<u64, FixedState>>,
    first_counted: u64,
    loses_at: u64,
    has_times: bool,
    seen: u64,
    reads: u64,
    before: Sums,
    lost: Option<Lost>,
}

impl FleetPlay {
    /// A play of a trace with this population.
    pub fn new(setting: Setting, population: &Population) -> FleetPlay {
        let names = names(&setting.addresses, setting.servers);
        let choice = Choice::new(setting.part, &population.hot, &population.requests_at);
        let first_counted = population.requests as f64 * setting.warm_up;
        FleetPlay {
            ring: Ring::new(setting.placement, &names),
            names,
            servers: (0..setting.servers).map(|_| Server::new(&setting, choice.part())).collect(),
            keys: vec![Default::default(); setting.servers],
            choice,
            fills: Fills::default(),
            first_counted: first_counted as u64,
            loses_at: ((first_counted + population.requests as f64) / 2.0) as u64,
            has_times: population.last_s > 0,
            seen: 0,
            reads: 0,
            before: Sums::default(),
            lost: None,
            setting,
        }
    }

    /// The next request of the trace. `draw` 0: the key is one that clients use.
    pub fn play(&mut self, request: &Request, key: &[u8], draw: u32) {
        let is_counted = self.seen >= self.first_counted;
        self.seen += 1;
        let is_read = request.operation == Operation::Get;
        if self.seen > self.loses_at && self.lost.is_none() && self.can_lose() {
            self.lose(request.at_s);
        }
        if let Some(lost) = &mut self.lost {
            lost.reads += u64::from(is_read && lost.is_counted(request.at_s));
            lost.last_s = lost.last_s.max(request.at_s);
        } else {
            self.reads += u64::from(is_read && is_counted);
        }
        let Some(stand) = self.choice.follows(request.hash) else { return };
        let Some(step) = self.fills.step(request) else { return };
        let point = self.setting.placement.point(key, draw);
        let server = self.ring.server_of(point);
        self.keys[server].insert(request.hash);
        let hit = self.servers[server].play(&step, stand);
        match &mut self.lost {
            Some(lost) => lost.play((&step, stand), (point, server), hit, &self.setting),
            None if is_counted => self.before.add(&step, stand, Some(server), hit),
            None => {}
        }
    }

    fn can_lose(&self) -> bool {
        self.has_times && self.setting.servers > 1
    }

    fn lose(&mut self, at_s: u32) {
        let setting = &self.setting;
        let server = hottest(&self.before.requests);
        let gutter_names: Vec<String> =
            (0..setting.gutter_servers).map(|number| format!("gutter-{number}:11211")).collect();
        let gutter = (setting.gutter_servers > 0).then(|| {
            let servers = gutter_names.iter().map(|_| Server::new(setting, self.choice.part()));
            (Ring::new(setting.placement, &gutter_names), servers.collect())
        });
        self.lost = Some(Lost {
            server,
            at_s,
            last_s: at_s,
            reads: 0,
            dropped_ring: Ring::without(setting.placement, &self.names, server),
            dropped: self.servers.clone(),
            gutter,
            sums: Default::default(),
        });
    }

    pub fn played(&self) -> Played {
        let followed =
            Followed { part: self.choice.part(), of_all_keys: self.setting.sampled == 1 };
        let servers = self.setting.servers;
        let all = self.before.all();
        let loss = self.lost.as_ref().map(|lost| {
            let seconds = (lost.last_s - lost.at_s).clamp(1, MINUTE_S);
            let whole = (lost.sums[0].all(), servers);
            let case = |(case, sums): (&LossCase, &Sums)| {
                let is_there = *case != LossCase::Gutter || lost.gutter.is_some();
                is_there.then(|| (*case, sums.period(lost.reads, whole, followed)))
            };
            Loss {
                server: lost.server,
                part: self.before.requests.get(lost.server).map_or(0.0, |part| part / all),
                seconds,
                reads_per_s: lost.reads as f64 * f64::from(self.setting.sampled)
                    / f64::from(seconds),
                cases: CASES.iter().zip(&lost.sums).filter_map(case).collect(),
            }
        });
        Played {
            servers,
            is_memcached: matches!(self.servers.first(), Some(Server::Memcached(_))),
            part: self.choice.part(),
            reads: self.reads,
            before: self.before.period(self.reads, (all, servers), followed),
            keys_of_server: self.keys.iter().map(HashSet::len).collect(),
            loss,
        }
    }
}

impl Lost {
    fn is_counted(&self, at_s: u32) -> bool {
        at_s < self.at_s + MINUTE_S
    }

    /// Play a step in each way. `hit` is what comes of it with the whole fleet.
    fn play(
        &mut self,
        (step, stand): (&Step, Stand),
        (point, server): (u64, usize),
        hit: Option<bool>,
        setting: &Setting,
    ) {
        if !self.is_counted(step.at_s) {
            return;
        }
        let is_lost = server == self.server;
        let missed = hit.map(|_| false);
        let mut add = |case: usize, server: Option<usize>, hit: Option<bool>| {
            self.sums[case].add(step, stand, server, hit);
        };
        add(0, Some(server), hit);
        add(1, (!is_lost).then_some(server), if is_lost { missed } else { hit });
        let other = self.dropped_ring.server_of(point);
        add(2, Some(other), self.dropped[other].play(step, stand));
        match &mut self.gutter {
            Some((ring, servers)) if is_lost => {
                let number = ring.server_of(point);
                let hit = servers[number].play(&short(step, setting.gutter_ttl_s), stand);
                add(3, Some(setting.servers + number), hit);
            }
            Some(_) => add(3, Some(server), hit),
            None => {}
        }
    }
}

/// The step in a pool that holds nothing for longer.
fn short(step: &Step, most_s: u32) -> Step {
    let shorter = |ttl_s: u32| if ttl_s == 0 { most_s } else { ttl_s.min(most_s) };
    let fill = |mut fill: Fill| {
        fill.ttl_s = shorter(fill.ttl_s);
        fill
    };
    let task = match step.task {
        Task::Get(found) => Task::Get(found.map(fill)),
        Task::Set(value) => Task::Set(fill(value)),
        Task::Add(value) => Task::Add(fill(value)),
        Task::Replace(value) => Task::Replace(fill(value)),
        Task::Touch(ttl_s) => Task::Touch(shorter(ttl_s)),
        other => other,
    };
    Step { task, ..*step }
}
