//! How often a tape uses the same keys.

use cachemark_tape::{
    KeyDistribution, Order, Reuse, Schedule, Tape, Workload, generate, parse_mix, parse_sequence,
};

fn reuse_of(workload: &Workload, ops: u64) -> Reuse {
    let bytes = generate(workload, &Schedule::closed(ops), 1).expect("a tape");
    Tape::from_bytes(bytes).expect("our own tape").reuse()
}

#[test]
fn a_tape_knows_whether_hits_depend_on_earlier_plays() {
    let reuse = |mix: &str, keys: u32, prefill: f64, ops: u64| {
        let mix = parse_mix(mix).expect("a mix");
        let uniform = Workload { keys, prefill, mix, ..Workload::default() };
        reuse_of(&uniform, ops)
    };
    let depends = |mix: &str, keys: u32, prefill: f64, ops: u64| {
        let of = reuse(mix, keys, prefill, ops);
        (of.kept.name(), of.lost.name())
    };
    // What is never stored is never found, however often it is asked for.
    assert_eq!(depends("get", 20_000, 0.5, 5_000), ("never", "never"));
    assert_eq!(depends("get=9,set=1", 20_000, 1.0, 5_000), ("never", "open"));
    assert_eq!(depends("get=9,set=1", 500, 1.0, 10_000), ("never", "covered"));
    assert_eq!(depends("get=9,set=1", 20_000, 0.5, 5_000), ("open", "open"));
    assert_eq!(depends("get=8,set=1,delete=1", 20_000, 1.0, 5_000), ("open", "open"));
    assert_eq!(depends("get=8,flush=1", 500, 1.0, 10_000), ("covered", "covered"));
    assert_eq!(depends("fetch", 20_000, 0.0, 5_000), ("open", "open"));
    assert_eq!(depends("fetch", 500, 0.0, 10_000), ("covered", "covered"));
    let once = reuse("fetch", 20_000, 0.0, 20_000);
    // 1 - 1/e of the keys.
    assert!(once.fills && (12_400..12_900).contains(&once.used_keys), "{once:?}");
    let sequential = Workload {
        keys: 300,
        distribution: KeyDistribution::Sequential,
        mix: parse_mix("fetch").expect("a mix"),
        prefill: 0.0,
        ..Workload::default()
    };
    assert_eq!(reuse_of(&sequential, 300).kept.name(), "covered");
    assert_eq!(reuse_of(&sequential, 299).kept.name(), "open");
}

#[test]
fn a_loop_body_decides_hits_whatever_was_played_before() {
    let depends = |text: &str, prefill: f64| {
        let steps = parse_sequence(text).expect("a sequence");
        let order = Order::Sequence { steps, key_step: 0 };
        let of = reuse_of(&Workload { keys: 3, prefill, order, ..Workload::default() }, 12);
        (of.kept.name(), of.lost.name())
    };
    // A deleted key is never found, whatever the server held before.
    assert_eq!(depends("delete@0 get@0 delete@1 mget@0-1", 1.0), ("never", "never"));
    // A stored key is, unless the server evicts it.
    assert_eq!(depends("set@0 get@0", 0.0), ("never", "covered"));
    assert_eq!(depends("set@0 get@0 delete@0", 0.0), ("never", "covered"));
    assert_eq!(depends("get@0 delete@0", 1.0), ("covered", "covered"));
    assert_eq!(depends("set@0 get@0 delete@0 get@0", 0.0), ("covered", "covered"));
    assert_eq!(depends("get@0 set@0", 0.0), ("covered", "covered"));
    assert_eq!(depends("set@0 delete@0", 1.0), ("covered", "covered"));
    assert_eq!(depends("delete@0 get@0 flush", 1.0), ("covered", "covered"));
}
