//! How many servers of a kind a trace needs: by memory, by rate, by network, and after the loss of one.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use crate::curve::MissCurve;
use crate::queue::Thread;
use crate::ring::{Placement, Ring};
use crate::shares::{Shares, largest};
use crate::traffic::KeyTraffic;

pub const MOST_SERVERS: usize = 1000;
/// If a trace's keys are not the clients', as many other keys take their place.
const DRAWS: u32 = 20;
const WAIT_PART: f64 = 0.01;

/// A kind of server that can be bought, with its limits. `None`: not known.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerKind {
    pub name: String,
    /// The memory for items: `memcached -m`.
    pub memory_bytes: u64,
    /// The highest rate at which it answers in time.
    pub rate: Option<f64>,
    pub threads: u32,
    pub service_s: Option<f64>,
    pub service_cv2: f64,
    pub network_bytes_per_s: Option<f64>,
    pub connections: Option<u64>,
    pub price: Option<f64>,
    /// The number that is there, however many are needed.
    pub number: Option<usize>,
}

/// The demand on all servers together.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The largest share of reads that may miss. `None`: memory decides nothing.
    pub misses: Option<f64>,
    pub requests_per_s: f64,
    /// In the direction with more of them.
    pub bytes_per_request: f64,
    /// The part of rate and network that is used as long as no server is lost.
    pub used_part: f64,
    /// Connections of all clients to each server.
    pub connections: u64,
}

/// The limit that decides the number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    Memory,
    Rate,
    Network,
    /// The rate, when one server is lost.
    Loss,
}

/// The median and the worst of several draws of keys, of a server with the largest part, as a multiple of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub worst: f64,
}

/// The servers that one limit needs. `None`: not even the most are enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitCount {
    pub limit: Limit,
    pub servers: Option<usize>,
}

/// How many servers of a kind are needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Count {
    pub kind: String,
    pub memory_bytes: u64,
    /// Of the limits that are known.
    pub limits: Vec<LimitCount>,
    /// The largest number. `None` if there is none, or no limit is known.
    pub needed: Option<usize>,
    /// The number for which the rest is: those that are there, or are needed.
    pub servers: Option<usize>,
    pub price: Option<f64>,
    /// With these servers: of memory and of requests.
    pub fullest: Option<Spread>,
    pub hottest: Option<Spread>,
    /// The share of reads that miss, by the closed formula.
    pub misses: Option<f64>,
    /// Of a thread of the hottest server, in the worst draw, at the highest rate.
    pub utilisation: Option<f64>,
    pub mean_wait_s: Option<f64>,
    /// One request of a hundred waits longer.
    pub p99_wait_s: Option<f64>,
    /// The highest rate of any fleet of this kind: then the server of the hottest key is at its limit.
    pub hot_key_rate: Option<f64>,
    /// Whether all clients can connect.
    pub connections_fit: Option<bool>,
}

/// The keys and how clients place them.
pub(crate) struct Keys<'a> {
    placement: Placement,
    addresses: &'a [String],
    keys: &'a [KeyTraffic],
    /// For each draw, the point of each key.
    points: Vec<Vec<u64>>,
    known: HashMap<usize, Rc<Drawn>>,
}

/// The shares of each draw: with all servers, and without the hottest, if there are others.
struct Drawn {
    whole: Vec<Shares>,
    rest: Vec<Shares>,
}

/// The names of servers, for a ring: the clients' names if there are as many.
pub(crate) fn names(addresses: &[String], servers: usize) -> Vec<String> {
    if addresses.len() == servers {
        return addresses.to_vec();
    }
    (0..servers).map(|number| format!("server-{number}:11211")).collect()
}

impl<'a> Keys<'a> {
    fn new(
        placement: Placement,
        addresses: &'a [String],
        keys: &'a [KeyTraffic],
        are_real: bool,
    ) -> Keys<'a> {
        // The real keys on servers with their real names have one place.
        let draws = if are_real && !addresses.is_empty() { 0..1 } else { 1..DRAWS + 1 };
        let of_draw = |draw: u32| keys.iter().map(|key| placement.point(&key.key, draw)).collect();
        Keys {
            placement,
            addresses,
            keys,
            points: draws.map(of_draw).collect(),
            known: HashMap::new(),
        }
    }

    fn shares(&mut self, servers: usize) -> Rc<Drawn> {
        if let Some(known) = self.known.get(&servers) {
            return known.clone();
        }
        let names = names(self.addresses, servers);
        let ring = Ring::new(self.placement, &names);
        let whole: Vec<Shares> = self
            .points
            .iter()
            .map(|points| Shares::of(&ring, servers, self.keys, points))
            .collect();
        let of_rest = |(points, shares): (&Vec<u64>, &Shares)| {
            let rest = Ring::without(self.placement, &names, hottest(&shares.requests));
            Shares::of(&rest, servers, self.keys, points)
        };
        let rest = if servers > 1 {
            self.points.iter().zip(&whole).map(of_rest).collect()
        } else {
            Vec::new()
        };
        let found = Rc::new(Drawn { whole, rest });
        self.known.insert(servers, found.clone());
        found
    }

    /// The smallest number of servers that is enough, if more are always as good.
    fn least(&mut self, is_enough: &dyn Fn(&Drawn) -> bool) -> Option<usize> {
        let (mut low, mut high) = (0, 1);
        while !is_enough(&self.shares(high)) {
            if high == MOST_SERVERS {
                return None;
            }
            (low, high) = (high, (2 * high).min(MOST_SERVERS));
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if is_enough(&self.shares(middle)) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// The server with the largest part.
pub(crate) fn hottest(parts: &[f64]) -> usize {
    let larger = |(place, part): (usize, &f64), best: (usize, f64)| {
        if *part > best.1 { (place, *part) } else { best }
    };
    parts.iter().enumerate().fold((0, 0.0), |best, each| larger(each, best)).0
}

fn spread(draws: &[Shares], of: fn(&Shares) -> &Vec<f64>) -> Spread {
    let mut multiples: Vec<f64> =
        draws.iter().map(|shares| largest(of(shares)) * of(shares).len() as f64).collect();
    multiples.sort_unstable_by(f64::total_cmp);
    Spread {
        median: multiples[multiples.len() / 2],
        worst: multiples.last().copied().unwrap_or_default(),
    }
}

/// How many servers of each kind are needed. `are_real`: the keys are those that clients use, and so are the addresses,
/// if there are any.
pub fn count_servers(
    kinds: &[ServerKind],
    demand: &Demand,
    curve: &MissCurve,
    (placement, addresses): (Placement, &[String]),
    (keys, are_real): (&[KeyTraffic], bool),
) -> Vec<Count> {
    let mut keys = Keys::new(placement, addresses, keys, are_real);
    kinds.iter().map(|kind| count(kind, demand, curve, &mut keys)).collect()
}

fn count(kind: &ServerKind, demand: &Demand, curve: &MissCurve, keys: &mut Keys<'_>) -> Count {
    let memory = kind.memory_bytes as f64;
    let misses = |shares: &Shares| curve.fleet_misses(memory, &shares.memory, &shares.requests);
    let holds = |draws: &[Shares], most_per_s: f64| {
        let hottest = draws.iter().map(|shares| largest(&shares.requests));
        hottest.fold(0.0, f64::max) * demand.requests_per_s <= most_per_s
    };
    let mut limits = Vec::new();
    if let Some(most) = demand.misses {
        let servers =
            keys.least(&|drawn| drawn.whole.iter().map(misses).fold(0.0, f64::max) <= most);
        limits.push(LimitCount { limit: Limit::Memory, servers });
    }
    if let Some(rate) = kind.rate {
        let servers = keys.least(&|drawn| holds(&drawn.whole, rate * demand.used_part));
        limits.push(LimitCount { limit: Limit::Rate, servers });
        let servers = keys.least(&|drawn| !drawn.rest.is_empty() && holds(&drawn.rest, rate));
        limits.push(LimitCount { limit: Limit::Loss, servers });
    }
    if let Some(network) = kind.network_bytes_per_s {
        let bytes_per_s = demand.requests_per_s * demand.bytes_per_request;
        let servers = keys.least(&|drawn| {
            let most =
                drawn.whole.iter().map(|shares| largest(&shares.network)).fold(0.0, f64::max);
            most * bytes_per_s <= network * demand.used_part
        });
        limits.push(LimitCount { limit: Limit::Network, servers });
    }
    let all: Option<Vec<usize>> = limits.iter().map(|each| each.servers).collect();
    let needed = all.and_then(|all| all.into_iter().max());
    let servers = kind.number.or(needed);
    let shares = servers.map(|servers| keys.shares(servers));
    let draws = shares.as_ref().map(|shares| &shares.whole[..]);
    let hottest = draws.map(|draws| spread(draws, |shares| &shares.requests));
    let thread =
        servers.zip(hottest).zip(kind.service_s).map(|((servers, hottest), service_s)| Thread {
            rate: demand.requests_per_s * hottest.worst / servers as f64 / f64::from(kind.threads),
            service_s,
            service_cv2: kind.service_cv2,
        });
    let all_requests: f64 = keys.keys.iter().map(|key| key.requests).sum();
    let hottest_key =
        keys.keys.iter().filter(|key| key.keys <= 1.0).map(|key| key.requests).fold(0.0, f64::max);
    Count {
        kind: kind.name.clone(),
        memory_bytes: kind.memory_bytes,
        limits,
        needed,
        servers,
        price: servers.zip(kind.price).map(|(servers, price)| servers as f64 * price),
        fullest: draws.map(|draws| spread(draws, |shares| &shares.memory)),
        hottest,
        misses: draws.map(|draws| draws.iter().map(misses).fold(0.0, f64::max)),
        utilisation: thread.map(|thread| thread.utilisation()),
        mean_wait_s: thread.and_then(|thread| thread.mean_wait_s()),
        p99_wait_s: thread.and_then(|thread| thread.wait_exceeded_s(WAIT_PART)),
        hot_key_rate: kind
            .rate
            .filter(|_| hottest_key > 0.0)
            .map(|rate| rate * demand.used_part * all_requests / hottest_key),
        connections_fit: kind.connections.map(|most| demand.connections <= most),
    }
}
