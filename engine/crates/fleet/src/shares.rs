//! Each server's share of all keys, requests and bytes of a fleet.

use crate::ring::Ring;
use crate::traffic::KeyTraffic;

/// Parts of the whole, by server: each sums to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    pub keys: Vec<f64>,
    pub requests: Vec<f64>,
    pub memory: Vec<f64>,
    /// Of the larger of what is sent and what is received.
    pub network: Vec<f64>,
}

impl Shares {
    /// Add up the keys, whose points are beside them, for a ring of `servers` servers.
    pub fn of(ring: &Ring, servers: usize, keys: &[KeyTraffic], points: &[u64]) -> Shares {
        let zeros = || vec![0.0; servers];
        let mut sums =
            Shares { keys: zeros(), requests: zeros(), memory: zeros(), network: zeros() };
        let total = |of: fn(&KeyTraffic) -> f64| keys.iter().map(of).sum::<f64>();
        let sends_more = total(|key| key.sent_bytes) >= total(|key| key.received_bytes);
        for (key, point) in keys.iter().zip(points) {
            let server = ring.server_of(*point);
            sums.keys[server] += key.keys;
            sums.requests[server] += key.requests;
            sums.memory[server] += key.charged_bytes;
            sums.network[server] += if sends_more { key.sent_bytes } else { key.received_bytes };
        }
        for parts in [&mut sums.keys, &mut sums.requests, &mut sums.memory, &mut sums.network] {
            let all: f64 = parts.iter().sum();
            parts.iter_mut().for_each(|part| *part = if all > 0.0 { *part / all } else { 0.0 });
        }
        sums
    }
}

/// The largest part.
pub(crate) fn largest(parts: &[f64]) -> f64 {
    parts.iter().copied().fold(0.0, f64::max)
}
