//! The length of a closed loop's tape, unless an option sets it.

use cachemark_tape::{Order, Verb, Workload};

/// Whatever is played, and whatever is not: a tape of fewer operations would be a few keys again and again, and one
/// of more takes an interpreter seconds to read.
const FEWEST: u64 = 20_000;
const USUAL: u64 = 100_000;
/// How many times slower a client in an interpreter is than the fastest ones.
const SLOW_PART: u64 = 12;
/// The keys of all batches.
const BATCH_KEYS: u64 = 1_000_000;
/// Up to this number, any tape reads all keys again and again.
const FEW_KEYS: u32 = 10_000;

/// The number of operations for a window in which the fastest client plays `window_ops`. Where hits depend on what
/// was played before, the whole window finds room, up to `most`: a tape that is repeated would hit more often.
pub fn chosen_ops(workload: &Workload, window_ops: u64, most: u64) -> u64 {
    let keys = u64::from(workload.keys).min(USUAL);
    let usual = (window_ops / SLOW_PART).max(keys).clamp(FEWEST, USUAL);
    let ops = if hits_depend_on_the_past(workload) {
        window_ops.clamp(usual, most.max(usual))
    } else {
        usual
    };
    let longest = if workload.has_runs() { workload.max_run() } else { 1 };
    let ops = ops.min(BATCH_KEYS / u64::from(longest)).max(1);
    match workload.order {
        Order::Phases => ops.next_multiple_of(workload.mix.len() as u64),
        _ => ops,
    }
}

/// Whether reads find keys because of earlier operations, which are not all stored in advance.
pub fn hits_depend_on_the_past(workload: &Workload) -> bool {
    let kinds = workload.kinds();
    let any = |verbs: &[Verb]| kinds.iter().any(|kind| verbs.contains(&kind.verb));
    // Few keys are soon all there; of many, some may be evicted.
    let fetches = any(&[Verb::Fetch]) && workload.keys > FEW_KEYS;
    fetches || any(&[Verb::Delete, Verb::Flush]) || begins_cold(workload) || grows(workload)
}

/// Whether it stores keys, of which none are there at the start.
pub fn begins_cold(workload: &Workload) -> bool {
    workload.prefill_count() == 0 && stores(workload)
}

/// Whether it stores keys that are not there at the start, in addition to others.
fn grows(workload: &Workload) -> bool {
    let whole = workload.prefill_count() >= workload.keys;
    workload.hit_ratio.is_none() && !whole && stores(workload)
}

fn stores(workload: &Workload) -> bool {
    let stores = |verb| matches!(verb, Verb::Set | Verb::Add | Verb::Mset | Verb::Fetch);
    workload.kinds().iter().any(|kind| stores(kind.verb))
}

#[cfg(test)]
mod tests {
    use cachemark_tape::parse_mix;

    use super::*;

    fn ops(mix: &str, keys: u32, prefill: f64, window_ops: u64) -> u64 {
        let mix = parse_mix(mix).expect("a mix");
        let workload = Workload { keys, prefill, mix, run: 1000, ..Workload::default() };
        chosen_ops(&workload, window_ops, 1_000_000)
    }

    #[test]
    fn a_tape_has_its_windows_length_only_for_hits() {
        assert_eq!(ops("get=9,set=1", 10_000, 1.0, 250_000), 20_833);
        assert_eq!(ops("get=9,set=1", 10_000, 1.0, 100_000_000), 100_000);
        assert_eq!(ops("get=9,set=1", 500_000, 1.0, 250_000), 100_000);
        assert_eq!(ops("get=9,set=1", 500_000, 0.5, 250_000), 250_000);
        assert_eq!(ops("fetch", 200_000, 0.0, 100_000), 100_000);
        assert_eq!(ops("fetch", 200_000, 1.0, 700_000), 700_000);
        assert_eq!(ops("fetch", 200_000, 0.0, 100_000_000), 1_000_000);
        assert_eq!(ops("get=9,delete=1,set=1", 2_000, 1.0, 700_000), 700_000);
        assert_eq!(ops("get", 2_000, 0.0, 700_000), 58_333);
    }

    #[test]
    fn long_batches_make_few_operations_and_phases_are_whole() {
        assert_eq!(ops("mget", 10_000, 1.0, 250_000), 1_000);
        let mix = parse_mix("set=1,get=1,delete=1").expect("a mix");
        let phases = Workload { mix, order: Order::Phases, ..Workload::default() };
        assert_eq!(chosen_ops(&phases, 250_000, 1_000_000), 250_002);
    }
}
