//! The table of pauses: each store is timed while the table grows and while items are evicted, and again with a
//! table that is large enough from the beginning. Pauses that both have come from the machine: new memory
//! pages, other programs. The CPU time is the thread's own, which other programs do not affect.

use std::ops::Range;
use std::time::Instant;

use cachemark_storage::{Mode, Store};
use comfy_table::Table;
use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

const NOW_S: u32 = 1;
const VALUE: [u8; 100] = [b'v'; 100];
/// About how many bytes one of these items needs, with its key and its slot.
const ITEM_BYTES: usize = 132;
const KEY_DIGITS: usize = 10;

/// The times of single stores: with a fixed table, with a growing one, with eviction.
pub fn table(limit_bytes: usize) -> Result<Table, String> {
    let mut table = Table::new();
    table.set_header([
        "stores",
        "table",
        "items",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "CPU p99.9",
        "CPU most",
    ]);
    let fits = limit_bytes / ITEM_BYTES;
    let power = (fits * 3 / 2).next_power_of_two().ilog2();
    for (name, hash_power) in [("grows", None), ("fixed", Some(power))] {
        let store = Store::with_hash_power(limit_bytes, hash_power)?;
        for (phase, round) in [("into free memory", 0), ("with eviction", 1)] {
            let (times, cpu) = times(&store, round * fits..(round + 1) * fits);
            let mut row = vec![phase.to_owned(), name.to_owned(), fits.to_string()];
            let format = |times: &Histogram<u64>, percentile| {
                format!("{:.2} µs", times.value_at_percentile(percentile) as f64 / 1e3)
            };
            row.extend([50.0, 99.0, 99.9, 100.0].map(|percentile| format(&times, percentile)));
            row.extend([99.9, 100.0].map(|percentile| format(&cpu, percentile)));
            table.add_row(row);
        }
    }
    Ok(table)
}

/// The times of stores of new keys, and their CPU times, in ns.
fn times(store: &Store, keys: Range<usize>) -> (Histogram<u64>, Histogram<u64>) {
    let histogram = || Histogram::new(3).expect("a valid precision");
    let (mut times, mut cpu) = (histogram(), histogram());
    for n in keys {
        let key = format!("{n:0KEY_DIGITS$}");
        let cpu_before = cpu_ns();
        let began = Instant::now();
        store.store(Mode::Set, key.as_bytes(), 0, 0, &VALUE, NOW_S);
        let took_ns = began.elapsed().as_nanos() as u64;
        cpu.record(cpu_ns() - cpu_before).expect("a histogram that grows");
        times.record(took_ns).expect("a histogram that grows");
    }
    (times, cpu)
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
