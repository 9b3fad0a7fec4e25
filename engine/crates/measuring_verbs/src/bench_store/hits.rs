//! The table of hit ratios: the same reads, each miss followed by a set, on the store and on memcached with the same
//! memory.

use std::path::Path;

use cachemark_storage::{Mode, Store};
use comfy_table::Table;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use super::peer::Peer;

const NOW_S: u32 = 1;
/// All items together are this many times as large as the memory.
const KEYS_OF_MEMORY: u64 = 4;
const VALUE_BYTES_MEAN: u64 = 550;
/// Reads to memcached that are in flight at the same time.
const BATCH: usize = 50;

/// A pattern of reads: the exponent of Zipf's law, and the percentage of reads that belong to a scan over keys
/// that are read once.
struct Pattern {
    name: &'static str,
    exponent: f64,
    scan_percent: u32,
}

const PATTERNS: [Pattern; 4] = [
    Pattern { name: "zipf 0.99", exponent: 0.99, scan_percent: 0 },
    Pattern { name: "zipf 0.7", exponent: 0.7, scan_percent: 0 },
    Pattern { name: "zipf 0.99, a fifth scans", exponent: 0.99, scan_percent: 20 },
    Pattern { name: "zipf 0.99, half scans", exponent: 0.99, scan_percent: 50 },
];

pub fn table(cache_bytes: u64, reads: u64, memcached: &Path) -> Result<Table, String> {
    let mut table = Table::new();
    table.set_header(["reads", "store", "memcached", "ratio"]);
    for pattern in &PATTERNS {
        let tape = tape(pattern, cache_bytes, reads);
        let ours = on_store(&tape, cache_bytes);
        let theirs = on_memcached(&tape, cache_bytes, memcached)?;
        let percent = |hits: u64| format!("{:.2} %", hits as f64 * 100.0 / reads as f64);
        let ratio = format!("{:.3}", ours as f64 / theirs as f64);
        table.add_row([pattern.name.to_owned(), percent(ours), percent(theirs), ratio]);
    }
    Ok(table)
}

fn tape(pattern: &Pattern, cache_bytes: u64, reads: u64) -> Vec<u32> {
    let keys = cache_bytes * KEYS_OF_MEMORY / VALUE_BYTES_MEAN;
    let law = Zipf::new(keys as f64, pattern.exponent).expect("a law");
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut scanned = keys as u32;
    let mut draw = || {
        if rng.random_range(0..100) < pattern.scan_percent {
            scanned += 1;
            return scanned;
        }
        law.sample(&mut rng) as u32
    };
    (0..reads).map(|_| draw()).collect()
}

fn key(n: u32) -> String {
    // Shuffle the ranks, so that no cache profits from their order.
    format!("key:{:010}", n.wrapping_mul(2_654_435_761))
}

/// The length of a key's value: 100 to 1000 bytes, always the same.
fn value_bytes(n: u32) -> usize {
    100 + (n.wrapping_mul(40_503) >> 7) as usize % 901
}

fn on_store(tape: &[u32], cache_bytes: u64) -> u64 {
    let store = Store::new(cache_bytes as usize);
    let value = [b'v'; 1000];
    let mut hits = 0;
    for n in tape {
        let key = key(*n);
        if store.get(key.as_bytes(), None, NOW_S, |_| ()).is_some() {
            hits += 1;
        } else {
            store.store(Mode::Set, key.as_bytes(), 0, 0, &value[..value_bytes(*n)], NOW_S);
        }
    }
    hits
}

fn on_memcached(tape: &[u32], cache_bytes: u64, program: &Path) -> Result<u64, String> {
    let mut peer = Peer::start(program, cache_bytes >> 20, None)?;
    let value = [b'v'; 1000];
    let (mut hits, mut requests) = (0, Vec::new());
    for batch in tape.chunks(BATCH) {
        requests.clear();
        for n in batch {
            requests.extend_from_slice(format!("get {}\r\n", key(*n)).as_bytes());
        }
        peer.send(&requests)?;
        requests.clear();
        let mut missed = Vec::new();
        for n in batch {
            if peer.take_get()?.is_some() {
                hits += 1;
            } else if missed.contains(n) {
                // Without pipelining, the key would have been stored by now.
                hits += 1;
            } else {
                missed.push(*n);
                let length = value_bytes(*n);
                let head = format!("set {} 0 0 {length} noreply\r\n", key(*n));
                requests.extend_from_slice(head.as_bytes());
                requests.extend_from_slice(&value[..length]);
                requests.extend_from_slice(b"\r\n");
            }
        }
        peer.send(&requests)?;
    }
    Ok(hits)
}
