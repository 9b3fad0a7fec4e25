//! The table of times of a read of 1 KiB, without a copy: in the process, from another process, and over the network
//! at depth 1.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use cachemark_command::cpus::usable;
use cachemark_command::process::print_text;
use cachemark_load::pin_to_cpu;
use cachemark_storage::{Item, Mode, Store};
use comfy_table::Table;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::peer::Peer;

const NOW_S: u32 = 1;
const KEYS: u64 = 10_000;
const KEY_BYTES: usize = 100;
/// How many digits of a key differ between keys.
const KEY_DIGITS: usize = KEYS.ilog10() as usize;
const VALUE_BYTES: usize = 1024;
const MEMORY_BYTES: usize = 64 << 20;
const READS: u64 = 1_000_000;
const NETWORK_READS: u64 = 5000;

pub fn table(rounds: u64, memcached: &Path) -> Result<Table, String> {
    let store = Store::new(MEMORY_BYTES);
    fill(&store);
    let folder = tempfile::tempdir_in("/dev/shm").map_err(|error| format!("/dev/shm: {error}"))?;
    let path = folder.path().join("store");
    let shared = Store::create(&path, MEMORY_BYTES, None).map_err(|error| error.to_string())?;
    fill(&shared);
    let cpus = cpus()?;
    let mut peer = Peer::start(memcached, 1024, cpus.get(1).copied())?;
    fill_peer(&mut peer)?;
    let map: HashMap<Vec<u8>, Box<[u8]>> =
        keys().into_iter().map(|key| (key, vec![b'v'; VALUE_BYTES].into())).collect();
    let mut rows: [Vec<f64>; 8] = Default::default();
    for _ in 0..rounds {
        let floor = read_of(3, |key| map.get(key).map(|value| (value[0], value[VALUE_BYTES - 1])));
        rows[5].push(floor.cpu_ns);
        let one = read_by_reference(&store, 1);
        rows[0].push(one.cpu_ns);
        rows[6].push(one.cpu_ns / floor.cpu_ns);
        rows[7].push(read_of(3, |key| Some((key[0], key[KEY_BYTES - 1]))).cpu_ns);
        let alone = read_on(&store, 1);
        let both = read_on(&store, 2);
        rows[1].push(both / alone);
        rows[2].push(peek_elsewhere(&path)?);
        rows[3].push(round_trip_ns(&mut peer, cpus[0])?);
        let ratio = rows[3].last().expect("just pushed") / one.wall_ns;
        rows[4].push(ratio);
    }
    let mut table = Table::new();
    table.set_header(["what", "median", "least", "most"]);
    let names = [
        "in the process, 1 thread: CPU ns per get",
        "in the process, 2 threads: gets relative to 1 thread",
        "shared memory, another process, no copy: CPU ns per get",
        "memcached over loopback, depth 1, a CPU each: ns per get",
        "memcached relative to the store in the process, wall clock",
        "an immutable HashMap of boxes, 1 thread: CPU ns per get",
        "the store relative to the HashMap",
        "drawing a key, which is part of all these times: CPU ns",
    ];
    for (name, mut figures) in names.into_iter().zip(rows) {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| format!("{:.1}", figures[index]);
        let last = figures.len() - 1;
        table.add_row([name.to_owned(), at(last / 2), at(0), at(last)]);
    }
    Ok(table)
}

/// The code of the other process: print the time of a read.
pub fn peek(path: &Path) -> Result<(), String> {
    let store = Store::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut draws = Draws::new(11);
    let mut read = |count: u64| {
        let mut found = 0;
        for _ in 0..count {
            let ends =
                store.peek(draws.key(), NOW_S, |seen| (seen.byte(0), seen.byte(seen.length() - 1)));
            found += u64::from(std::hint::black_box(ends).is_some());
        }
        found
    };
    read(READS / 5);
    let before = cpu_ns();
    let found = read(READS);
    let took = cpu_ns() - before;
    if found != READS {
        return Err(format!("{found} of {READS} reads found their key"));
    }
    print_text(format_args!("{}\n", took as f64 / READS as f64));
    Ok(())
}

fn keys() -> Vec<Vec<u8>> {
    (0..KEYS).map(|n| format!("{n:0>KEY_BYTES$}").into_bytes()).collect()
}

fn fill(store: &Store) {
    for key in keys() {
        store.store(Mode::Set, &key, 0, 0, &[b'v'; VALUE_BYTES], NOW_S);
    }
}

/// Random keys (xorshift, G. Marsaglia 2003). Each is written over the last one, so that it is in the cache as
/// the key of a real program would be. Loading keys from a list would take as long as a read.
struct Draws {
    state: u64,
    key: Vec<u8>,
}

impl Draws {
    fn new(seed: u64) -> Draws {
        Draws { state: seed, key: vec![b'0'; KEY_BYTES] }
    }

    #[inline]
    fn key(&mut self) -> &[u8] {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let mut rest = ((u128::from(self.state) * u128::from(KEYS)) >> 64) as u64;
        for digit in self.key.iter_mut().rev().take(KEY_DIGITS) {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.key
    }
}

struct Read {
    cpu_ns: f64,
    wall_ns: f64,
}

fn read_by_reference(store: &Store, seed: u64) -> Read {
    let ends = |item: &Item<'_>| (item.value[0], item.value[VALUE_BYTES - 1]);
    read_of(seed, |key| store.get(key, None, NOW_S, ends))
}

/// The time of a kind of read, with random keys.
fn read_of(seed: u64, get: impl Fn(&[u8]) -> Option<(u8, u8)>) -> Read {
    let mut draws = Draws::new(seed * 77 + 1);
    let mut read = |count: u64| {
        for _ in 0..count {
            std::hint::black_box(get(draws.key()));
        }
    };
    read(READS / 5);
    let (before, began) = (cpu_ns(), Instant::now());
    read(READS);
    let each = |ns: u64| ns as f64 / READS as f64;
    Read { cpu_ns: each(cpu_ns() - before), wall_ns: each(began.elapsed().as_nanos() as u64) }
}

/// Gets per CPU second of each thread, summed over all threads: what they would do with a CPU each, which a busy
/// machine may not have.
fn read_on(store: &Store, threads: u64) -> f64 {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let each = (0..threads).map(|seed| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                1e9 / read_by_reference(store, seed + 2).cpu_ns
            })
        });
        let started: Vec<_> = each.collect();
        started.into_iter().map(|thread| thread.join().expect("a reader that ends")).sum()
    })
}

fn peek_elsewhere(path: &Path) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args(["bench-store", "--peek"]).arg(path).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    text.trim().parse().map_err(|_| format!("the other process: {}", said()))
}

fn fill_peer(peer: &mut Peer) -> Result<(), String> {
    for key in keys() {
        let head = [b"set ", &key[..], b" 0 0 1024 noreply\r\n", &[b'v'; VALUE_BYTES], b"\r\n"];
        peer.send(&head.concat())?;
    }
    Ok(())
}

/// The wall-clock time of a get over the network, with this thread on a CPU of its own.
fn round_trip_ns(peer: &mut Peer, cpu: usize) -> Result<f64, String> {
    let before = sched_getaffinity(None).map_err(|error| error.to_string())?;
    pin_to_cpu(cpu).map_err(|error| error.to_string())?;
    let mut draws = Draws::new(5);
    let began = Instant::now();
    for _ in 0..NETWORK_READS {
        peer.send(&[b"get ", draws.key(), b"\r\n"].concat())?;
        if peer.take_get()? != Some(VALUE_BYTES) {
            return Err("memcached lost a key that it had room for".to_owned());
        }
    }
    let each = began.elapsed().as_nanos() as f64 / NETWORK_READS as f64;
    sched_setaffinity(None, &before).map_err(|error| error.to_string())?;
    Ok(each)
}

/// Two CPUs that this process may use, one for the client and one for the server.
fn cpus() -> Result<Vec<usize>, String> {
    let cpus = usable().map_err(|error| error.to_string())?;
    if cpus.len() < 2 {
        return Err("two CPUs are needed, one for the client and one for memcached".to_owned());
    }
    Ok(cpus)
}

/// The CPU time of this thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
