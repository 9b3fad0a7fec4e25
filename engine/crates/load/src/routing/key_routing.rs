//! Which of several servers holds a key: computed for all keys of a tape before the measurement.

use cachemark_tape::{Op, Tape};
use md5::{Digest, Md5};

use super::hashes::{jenkins_one_at_a_time, ketama_point, ketama_ring, server_at};
use crate::options::{Address, Hashing};

/// The server of each key, and the runs of the tape, sorted by server.
#[derive(Debug)]
pub struct KeyRouting {
    servers: usize,
    /// Every server holds every key: writes go to all servers, reads go to the key's own server.
    replicas: bool,
    /// Index: key.
    server_of_key: Vec<u16>,
    /// The runs of all records, one after the other, each sorted by server, from the server of its first key on: this
    /// key stays the first, as the record tells its generation.
    runs: Vec<u32>,
    /// Index: record. Where its run starts in `runs`. Empty if no record of the tape has a run.
    run_starts: Vec<u32>,
}

impl KeyRouting {
    /// Compute the server of each key of a tape.
    pub fn new(tape: &Tape, addresses: &[Address], hashing: Hashing, replicas: bool) -> KeyRouting {
        let servers = addresses.len();
        let names: Vec<String> = addresses.iter().map(Address::to_string).collect();
        let ring = ketama_ring(&names);
        let server = |k: u32| match hashing {
            Hashing::Modulo => (jenkins_one_at_a_time(tape.key(k)) as usize % servers) as u16,
            Hashing::Ketama => server_at(&ring, ketama_point(&Md5::digest(tape.key(k)), 0)),
        };
        let server_of_key: Vec<u16> = (0..tape.key_count()).map(server).collect();
        let (runs, run_starts) = runs_by_server(tape, servers, &server_of_key);
        KeyRouting { servers, replicas, server_of_key, runs, run_starts }
    }

    pub fn servers(&self) -> usize {
        self.servers
    }

    /// The server of a key, as an index into the list of addresses.
    #[inline]
    fn server_of(&self, k: u32) -> usize {
        usize::from(self.server_of_key[k as usize])
    }

    /// The key at a position of a run. `op` comes from `grouped_by_server`.
    #[inline]
    pub fn run_key(&self, op: &Op, at: u16) -> u32 {
        self.runs[op.key as usize + usize::from(at)]
    }

    /// The operation of a record, with its run sorted by server.
    #[inline]
    pub fn grouped_by_server(&self, op: Op, record: u64) -> Op {
        if op.verb.has_run() { Op { key: self.run_starts[record as usize], ..op } } else { op }
    }

    /// Whether the operation goes to every server.
    pub fn is_replicated(&self, op: &Op) -> bool {
        self.replicas && (op.verb.writes() || op.verb.changes())
    }

    /// The parts of an operation from `grouped_by_server`: (server, part), each server once.
    pub fn parts(&self, op: &Op) -> impl Iterator<Item = (usize, Op)> {
        let everywhere = self.is_replicated(op);
        let (routing, op) = (self, *op);
        let mut taken = 0;
        std::iter::from_fn(move || {
            if taken >= op.run.max(1) as usize && !everywhere {
                return None;
            }
            if everywhere {
                taken += 1;
                return (taken <= routing.servers).then(|| (taken - 1, op));
            }
            if !op.verb.has_run() {
                taken += 1;
                return Some((routing.server_of(op.key), op));
            }
            let keys = &routing.runs[op.key as usize..op.key as usize + usize::from(op.run)];
            let server = routing.server_of(keys[taken]);
            let length =
                keys[taken..].iter().take_while(|k| routing.server_of(**k) == server).count();
            let generation = if taken == 0 { op.generation } else { 0 };
            let part = Op { key: op.key + taken as u32, run: length as u16, generation, ..op };
            taken += length;
            Some((server, part))
        })
    }
}

fn runs_by_server(tape: &Tape, servers: usize, server_of_key: &[u16]) -> (Vec<u32>, Vec<u32>) {
    let (mut runs, mut run_starts) = (Vec::new(), Vec::new());
    let records = || (0..tape.op_count()).map(|j| tape.op(j));
    if !records().any(|op| op.verb.has_run()) {
        return (runs, run_starts);
    }
    for op in records() {
        run_starts.push(runs.len() as u32);
        if op.verb.has_run() {
            let begin = runs.len();
            runs.extend(tape.run(&op));
            let server = |k: u32| usize::from(server_of_key[k as usize]);
            let first = runs.get(begin).map_or(0, |k| server(*k));
            runs[begin..].sort_by_key(|k| (server(*k) + servers - first) % servers);
        }
    }
    (runs, run_starts)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use cachemark_tape::{
        IntegerDistribution, KeyShape, Schedule, Verb, Workload, generate, parse_mix,
    };

    use super::*;

    fn tape(mix: &str) -> Tape {
        let workload = Workload {
            keys: 100,
            shape: KeyShape::Pattern("key-{index}".to_owned()),
            size: IntegerDistribution::fixed(10),
            mix: parse_mix(mix).expect("a mix"),
            run: 12,
            ..Workload::default()
        };
        let bytes = generate(&workload, &Schedule::closed(200), 1).expect("a tape");
        Tape::from_bytes(bytes).expect("our own tape")
    }

    fn routing(tape: &Tape, replicas: bool) -> KeyRouting {
        let addresses: Vec<Address> =
            (1..4).map(|n| Address::parse(&format!("127.0.0.{n}:11211")).expect("one")).collect();
        KeyRouting::new(tape, &addresses, Hashing::Ketama, replicas)
    }

    fn key_at(routing: &KeyRouting, op: &Op, at: u16) -> u32 {
        if op.verb.has_run() { routing.run_key(op, at) } else { op.key }
    }

    #[test]
    fn parts_cover_a_run_with_each_key_on_its_server() {
        let tape = tape("mget=1,mset=1,get=1");
        let routing = routing(&tape, false);
        for j in 0..tape.op_count() {
            let op = tape.op(j);
            let whole = routing.grouped_by_server(op, j);
            let parts: Vec<(usize, Op)> = routing.parts(&whole).collect();
            let servers: HashSet<usize> = parts.iter().map(|(server, _)| *server).collect();
            assert_eq!(servers.len(), parts.len(), "each server once");
            assert_eq!(key_at(&routing, &parts[0].1, 0), tape.run(&op).next().expect("a key"));
            let mut keys = Vec::new();
            for (server, part) in parts {
                let of_part = || (0..part.run).map(|at| key_at(&routing, &part, at));
                keys.extend(of_part());
                assert!(of_part().all(|k| routing.server_of(k) == server));
            }
            let mut wanted: Vec<u32> = tape.run(&op).collect();
            wanted.sort_unstable();
            keys.sort_unstable();
            assert_eq!(keys, wanted);
        }
    }

    #[test]
    fn replicas_are_written_everywhere_and_read_from_one_server() {
        let tape = tape("set=1,touch=1,mset=1,get=1,mget=1");
        let routing = routing(&tape, true);
        for j in 0..tape.op_count() {
            let whole = routing.grouped_by_server(tape.op(j), j);
            let parts: Vec<(usize, Op)> = routing.parts(&whole).collect();
            match whole.verb {
                Verb::Get => assert_eq!(parts, [(routing.server_of(whole.key), whole)]),
                Verb::Mget => assert!(parts.iter().all(|(_, part)| part.run <= whole.run)),
                _ => assert_eq!(parts, [0, 1, 2].map(|server| (server, whole))),
            }
        }
    }
}
