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

/// Who holds what: the home of each key, and the runs of the tape in the order of their homes.
#[derive(Debug)]
pub struct Spread {
    servers: usize,
    /// Each server holds every key: writes go to all, reads to the key's home.
    replicas: bool,
    /// By key.
    homes: Vec<u16>,
    /// The runs of all records, one after the other, each in the order of its homes.
    runs: Vec<u32>,
    /// By record: where its run begins in `runs`. Empty where no record has one.
    starts: Vec<u32>,
}

impl Spread {
    /// Spread a tape's keys.
    pub fn new(tape: &Tape, addresses: &[Address], hashing: Hashing, replicas: bool) -> Spread {
        let servers = addresses.len();
        let names: Vec<String> = addresses.iter().map(Address::to_string).collect();
        let ring = ring(&names);
        let home = |k: u32| match hashing {
            Hashing::Modulo => (one_at_a_time(tape.key(k)) as usize % servers) as u16,
            Hashing::Ketama => on_ring(&ring, ketama_point(&Md5::digest(tape.key(k)), 0)),
        };
        let homes: Vec<u16> = (0..tape.key_count()).map(home).collect();
        let (runs, starts) = in_order_of_homes(tape, &homes);
        Spread { servers, replicas, homes, runs, starts }
    }

    pub fn servers(&self) -> usize {
        self.servers
    }

    /// The server of a key, as its place in the list.
    #[inline]
    fn home(&self, k: u32) -> usize {
        usize::from(self.homes[k as usize])
    }

    /// The key at a place of a run of `op`, which is `ordered`.
    #[inline]
    pub fn run_key(&self, op: &Op, at: u16) -> u32 {
        self.runs[op.key as usize + usize::from(at)]
    }

    /// The operation of a record with its run in the order of homes.
    #[inline]
    pub fn ordered(&self, op: Op, record: u64) -> Op {
        if op.verb.has_run() { Op { key: self.starts[record as usize], ..op } } else { op }
    }

    /// Whether the parts of an operation all do the same, each on another server.
    pub fn copies(&self, op: &Op) -> bool {
        self.replicas && (op.verb.writes() || op.verb.changes())
    }

    /// What of an ordered operation goes to which server, in the order of servers.
    pub fn parts(&self, op: &Op) -> impl Iterator<Item = (usize, Op)> {
        let everywhere = self.copies(op);
        let (spread, op) = (self, *op);
        let mut begun = 0;
        std::iter::from_fn(move || {
            if begun >= op.run.max(1) as usize && !everywhere {
                return None;
            }
            if everywhere {
                begun += 1;
                return (begun <= spread.servers).then(|| (begun - 1, op));
            }
            if !op.verb.has_run() {
                begun += 1;
                return Some((spread.home(op.key), op));
            }
            let keys = &spread.runs[op.key as usize..op.key as usize + usize::from(op.run)];
            let home = spread.home(keys[begun]);
            let length = keys[begun..].iter().take_while(|k| spread.home(**k) == home).count();
            let part = Op { key: op.key + begun as u32, run: length as u16, ..op };
            begun += length;
            Some((home, part))
        })
    }
}

fn in_order_of_homes(tape: &Tape, homes: &[u16]) -> (Vec<u32>, Vec<u32>) {
    let (mut runs, mut starts) = (Vec::new(), Vec::new());
    let records = || (0..tape.op_count()).map(|j| tape.op(j));
    if !records().any(|op| op.verb.has_run()) {
        return (runs, starts);
    }
    for op in records() {
        starts.push(runs.len() as u32);
        if op.verb.has_run() {
            let begin = runs.len();
            runs.extend(tape.run(&op));
            runs[begin..].sort_by_key(|k| homes[*k as usize]);
        }
    }
    (runs, starts)
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
    use cachemark_tape::{KeyShape, Law, Schedule, Verb, Workload, generate, parse_mix};

    use super::*;

    fn tape(mix: &str) -> Tape {
        let workload = Workload {
            keys: 100,
            shape: KeyShape::Pattern("key-{index}".to_owned()),
            size: Law::fixed(10),
            mix: parse_mix(mix).expect("a mix"),
            run: 12,
            ..Workload::default()
        };
        let bytes = generate(&workload, &Schedule::closed(200), 1).expect("a tape");
        Tape::from_bytes(bytes).expect("our own tape")
    }

    fn spread(tape: &Tape, replicas: bool) -> Spread {
        let addresses: Vec<Address> =
            (1..4).map(|n| Address::parse(&format!("127.0.0.{n}:11211")).expect("one")).collect();
        Spread::new(tape, &addresses, Hashing::Ketama, replicas)
    }

    #[test]
    fn parts_of_a_run_are_all_of_it_each_key_at_its_home() {
        let tape = tape("mget=1,mset=1,get=1");
        let spread = spread(&tape, false);
        for j in 0..tape.op_count() {
            let op = tape.op(j);
            let whole = spread.ordered(op, j);
            let parts: Vec<(usize, Op)> = spread.parts(&whole).collect();
            assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0), "each server once");
            let book = crate::book::Book::new(&tape, Some(&spread));
            let mut keys = Vec::new();
            for (server, part) in parts {
                keys.extend(book.keys(&part));
                assert!(book.keys(&part).all(|k| spread.home(k) == server));
            }
            let mut wanted: Vec<u32> = tape.run(&op).collect();
            wanted.sort_unstable();
            keys.sort_unstable();
            assert_eq!(keys, wanted);
        }
    }

    #[test]
    fn replicas_are_written_everywhere_and_read_at_home() {
        let tape = tape("set=1,touch=1,mset=1,get=1,mget=1");
        let spread = spread(&tape, true);
        for j in 0..tape.op_count() {
            let whole = spread.ordered(tape.op(j), j);
            let parts: Vec<(usize, Op)> = spread.parts(&whole).collect();
            match whole.verb {
                Verb::Get => assert_eq!(parts, [(spread.home(whole.key), whole)]),
                Verb::Mget => assert!(parts.iter().all(|(_, part)| part.run <= whole.run)),
                _ => assert_eq!(parts, [0, 1, 2].map(|server| (server, whole))),
            }
        }
    }

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
