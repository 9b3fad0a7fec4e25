//! Which of several servers holds a key. Reckoned for the whole key table before anything is timed.

use cachemark_tape::{Op, Tape};
use md5::{Digest, Md5};

use crate::socket::Address;

/// How keys are spread over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// A hash of the key, modulo the number of servers: Jenkins' one-at-a-time, as libmemcached has it.
    #[default]
    Modulo,
    /// Consistent: 160 points of each server on a ring, from MD5, as libketama has them.
    Ketama,
}

/// The home of each key of a tape.
#[derive(Debug)]
pub struct Spread {
    servers: usize,
    /// By key; empty where there is one server.
    homes: Vec<u16>,
}

impl Spread {
    /// Spread a tape's keys. The error names an operation whose keys have no one home: this client
    /// sends an operation to one server.
    pub fn new(tape: &Tape, addresses: &[Address], hashing: Hashing) -> Result<Spread, String> {
        let servers = addresses.len();
        let names: Vec<String> = addresses.iter().map(Address::to_string).collect();
        let ring = ring(&names);
        let home = |k: u32| match hashing {
            Hashing::Modulo => (one_at_a_time(tape.key(k)) as usize % servers) as u16,
            Hashing::Ketama => on_ring(&ring, ketama_point(&Md5::digest(tape.key(k)), 0)),
        };
        let homes = if servers == 1 { vec![] } else { (0..tape.key_count()).map(home).collect() };
        let spread = Spread { servers, homes };
        match (0..tape.op_count()).map(|j| tape.op(j)).find(|op| !spread.has_one_home(op, tape)) {
            Some(op) => Err(format!("{} of keys on several servers", op.verb.kind(op.noreply))),
            None => Ok(spread),
        }
    }

    pub fn servers(&self) -> usize {
        self.servers
    }

    /// The server of a key, as its place in the list.
    #[inline]
    pub fn home(&self, k: u32) -> usize {
        self.homes.get(k as usize).map_or(0, |home| usize::from(*home))
    }

    fn has_one_home(&self, op: &Op, tape: &Tape) -> bool {
        op.run < 2 || tape.run(op).all(|k| self.home(k) == self.home(op.key))
    }
}

/// Bob Jenkins' hash, byte by byte.
fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    for byte in key {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// 40 digests of each server, four points in each.
fn ring(names: &[String]) -> Vec<(u32, u16)> {
    let mut points = Vec::with_capacity(names.len() * 160);
    for (server, name) in names.iter().enumerate() {
        for number in 0..40 {
            let digest = Md5::digest(format!("{name}-{number}"));
            points.extend((0..4).map(|part| (ketama_point(&digest, part), server as u16)));
        }
    }
    points.sort_unstable();
    points
}

fn ketama_point(digest: &[u8], part: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&digest[4 * part..4 * part + 4]);
    u32::from_le_bytes(bytes)
}

/// The first point at or after this one; behind the last comes the first.
fn on_ring(ring: &[(u32, u16)], point: u32) -> u16 {
    let at = ring.partition_point(|(other, _)| *other < point);
    ring[at % ring.len()].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_jenkins() {
        // The examples of its author's page.
        assert_eq!(one_at_a_time(b"a"), 0xca2e_9442);
        assert_eq!(one_at_a_time(b"The quick brown fox jumps over the lazy dog"), 0x519e_91f5);
    }

    #[test]
    fn a_ring_is_even_and_keeps_most_keys_when_a_server_goes() {
        let names: Vec<String> = (0..4).map(|n| format!("10.0.0.{n}:11211")).collect();
        let (whole, less) = (ring(&names), ring(&names[..3]));
        assert_eq!(whole.len(), 640);
        let mut counts = [0; 4];
        let mut moved = 0;
        for number in 0..10_000 {
            let point = ketama_point(&Md5::digest(format!("key-{number}")), 0);
            let home = on_ring(&whole, point);
            counts[usize::from(home)] += 1;
            moved += u32::from(home < 3 && on_ring(&less, point) != home);
        }
        assert!(counts.iter().all(|count| (1500..3500).contains(count)), "{counts:?}");
        assert_eq!(moved, 0);
    }

    #[test]
    fn behind_the_last_point_comes_the_first() {
        let ring = [(10, 0), (20, 1)];
        assert_eq!([0, 10, 11, 20, 21].map(|point| on_ring(&ring, point)), [0, 0, 1, 1, 0]);
    }
}
