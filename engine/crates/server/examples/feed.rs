//! The cost of a GET below the sockets: requests are carried out on a store of 10,000 items of 100 bytes,
//! a number at a time, and nothing is sent. `feed meta 100 200000` for a count of instructions under
//! `valgrind --tool=callgrind`, or for the nanoseconds that it prints.

#![allow(clippy::print_stdout, reason = "an example for developers")]

use std::time::Instant;

use cachemark_protocol::binary::request::HEADER_BYTES;
use cachemark_server::{IoMode, Session, Settings, State};

const NOW_S: u32 = 1;
const KEYS: u64 = 10_000;
const VALUE: [u8; 100] = [b'v'; 100];

fn key(n: u64) -> String {
    format!("key:{n:016}")
}

/// The request for a key's item.
fn request(wire: &str, key: &str) -> Vec<u8> {
    match wire {
        "text" => format!("get {key}\r\n").into_bytes(),
        "meta" => format!("mg {key} k f v\r\n").into_bytes(),
        "binary" => {
            let mut request = vec![0x80, 0, 0, key.len() as u8];
            request.resize(HEADER_BYTES, 0);
            request[11] = key.len() as u8;
            request.extend_from_slice(key.as_bytes());
            request
        }
        other => panic!("{other:?}: text, meta or binary"),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [wire, depth, count] = &words[..] else { panic!("feed text|meta|binary DEPTH COUNT") };
    let depth: usize = depth.parse().expect("a depth");
    let count: usize = count.parse().expect("a count");
    let settings = Settings {
        io: IoMode::Events,
        threads: 1,
        memory_bytes: 64 << 20,
        item_bytes_max: 1 << 20,
        max_connections: 1,
        ..Settings::default()
    };
    let state = State::new(settings, "1");
    let (mut session, mut out) = (Session::default(), Vec::new());
    for n in 0..KEYS {
        state.store.store(cachemark_storage::Mode::Set, key(n).as_bytes(), 0, 0, &VALUE, NOW_S);
    }
    let mut random = 1_u64;
    let mut draw = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % KEYS
    };
    let batches: Vec<Vec<u8>> = (0..count / depth)
        .map(|_| (0..depth).flat_map(|_| request(wire, &key(draw()))).collect())
        .collect();
    let began = Instant::now();
    for batch in &batches {
        out.clear();
        let fed = session.feed(batch, &state, NOW_S, &mut out);
        assert_eq!(fed.consumed, batch.len());
    }
    let spent_ns = began.elapsed().as_nanos() as usize;
    let hits = state.store.usage(NOW_S).counters.get_hits as usize;
    assert_eq!(hits, count / depth * depth);
    println!("{wire}, {depth} at a time: {} ns a request", spent_ns / hits);
}
