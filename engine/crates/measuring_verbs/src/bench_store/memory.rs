//! The table of bytes: a store is filled beyond its limit; then the memory of the process is compared with the
//! bytes of keys and values.

use cachemark_storage::{Mode, Store};
use comfy_table::Table;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const NOW_S: u32 = 1;
const KEY_BYTES: usize = 10;
/// How much is written, relative to the limit: more than fits.
const WRITTEN: f64 = 1.2;

pub fn table(limit_bytes: usize) -> Result<Table, String> {
    let mut table = Table::new();
    table.set_header([
        "values",
        "items",
        "user MiB",
        "of `bytes`",
        "of RSS",
        "RSS of the limit",
        "before the store",
        "table an item",
    ]);
    for (least, most) in [(100, 1000), (20, 200)] {
        table.add_row(row(limit_bytes, least, most)?);
    }
    Ok(table)
}

fn row(limit_bytes: usize, least: usize, most: usize) -> Result<Vec<String>, String> {
    let lengths = lengths(limit_bytes, least, most);
    let before = rss_bytes()?;
    let store = Store::new(limit_bytes);
    let value = vec![b'v'; most];
    for (n, length) in lengths.iter().enumerate() {
        let key = format!("{n:0KEY_BYTES$}");
        let value = &value[..usize::from(*length)];
        store.store(Mode::Set, key.as_bytes(), 0, 0, value, NOW_S);
    }
    // The list of lengths belongs to the benchmark. Everything else is counted, also the program.
    let list = (lengths.len() * size_of::<u16>()) as u64;
    let rss = rss_bytes()? - list;
    let usage = store.usage(NOW_S);
    let there = |n: &usize| {
        let key = format!("{n:0KEY_BYTES$}");
        store.get(key.as_bytes(), None, NOW_S, |item| item.value.len()).is_some()
    };
    let living: Vec<usize> = (0..lengths.len()).filter(there).collect();
    let user: u64 = living.iter().map(|n| KEY_BYTES as u64 + u64::from(lengths[*n])).sum();
    if living.len() as u64 != usage.items {
        return Err(format!("{} items can be read, {} are counted", living.len(), usage.items));
    }
    let percent = |part: u64, whole: u64| format!("{:.1} %", part as f64 * 100.0 / whole as f64);
    Ok(vec![
        format!("{least}–{most} B"),
        usage.items.to_string(),
        format!("{:.1}", user as f64 / f64::from(1 << 20)),
        percent(user, usage.bytes),
        percent(user, rss),
        percent(rss, limit_bytes as u64),
        percent(before - list, limit_bytes as u64),
        format!("{:.1} B", usage.table_bytes as f64 / usage.items as f64),
    ])
}

/// The lengths of values that together exceed the limit.
fn lengths(limit_bytes: usize, least: usize, most: usize) -> Vec<u16> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mean = KEY_BYTES + least.midpoint(most);
    let count = (limit_bytes as f64 * WRITTEN) as usize / mean;
    (0..count).map(|_| rng.random_range(least..=most) as u16).collect()
}

/// The resident memory of this process.
fn rss_bytes() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| "/proc/self/status has no VmRSS".to_owned())
}
