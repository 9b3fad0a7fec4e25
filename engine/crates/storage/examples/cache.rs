//! A cache that is smaller than what is put into it, read by two threads: `cargo run --example cache`.
//!
//! Items that are read again stay; the others make room.
// An example may stop with a panic if stdout is closed.
#![allow(clippy::print_stdout)]

use std::ops::Range;
use std::thread;

use cachemark_storage::{Mode, Store};

const ITEMS: u32 = 300_000;
const HOT: u32 = 1_000;
const NOW_S: u32 = 1_800_000_000;

fn main() {
    let store = Store::new(16 << 20);
    for number in 0..ITEMS {
        store.store(Mode::Set, &key(number), 0, 0, &[b'x'; 200], NOW_S);
        // The hot items are asked for all the time.
        store.get(&key(number % HOT), None, NOW_S, |_| ());
    }
    let (hot, cold) = thread::scope(|scope| {
        let hot = scope.spawn(|| kept(&store, 0..HOT));
        let cold = scope.spawn(|| kept(&store, HOT..ITEMS));
        (hot.join().expect("it only reads"), cold.join().expect("it only reads"))
    });
    let usage = store.usage(NOW_S);
    println!("{hot} of {HOT} hot items are there, and {cold} of {} others", ITEMS - HOT);
    println!("{} items, {} bytes of {}", usage.items, usage.bytes, usage.limit_bytes);
    println!("{} items were evicted", usage.counters.evictions);
    assert_eq!(u64::from(hot + cold), usage.items);
    assert!(hot > HOT / 10 * 9, "items that are read stay");
}

fn key(number: u32) -> Vec<u8> {
    format!("user:{number}").into_bytes()
}

fn kept(store: &Store, numbers: Range<u32>) -> u32 {
    let mut count = 0;
    for number in numbers {
        count += u32::from(store.get(&key(number), None, NOW_S, |_| ()).is_some());
    }
    count
}
