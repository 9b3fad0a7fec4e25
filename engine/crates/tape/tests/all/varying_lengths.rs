//! Tapes whose writes of a key have other lengths each time.

use cachemark_tape::{
    IntegerDistribution, IntegerRange, Schedule, Tape, Workload, generate, parse_mix,
};

fn open(workload: &Workload) -> Tape {
    let bytes =
        generate(workload, &Schedule::closed(2000), 1).expect("a workload that can be made");
    Tape::from_bytes(bytes).expect("our own tape")
}

#[test]
fn each_write_of_a_key_has_another_length() {
    let size: IntegerDistribution = IntegerRange { low: 10, high: 29 }.into();
    let mix = parse_mix("set=3,get=3,cas=1,add=1,append=1,incr=1").expect("a mix");
    let varied =
        Workload { keys: 20, counters: 2, size, mix, vary_lengths: true, ..Workload::default() };
    let tape = open(&varied);
    let plain = open(&Workload { vary_lengths: false, ..varied });
    let mut last: Vec<u32> = (0..20).map(|k| tape.value_length(k)).collect();
    for j in 0..2000 {
        let (op, usual) = (tape.op(j), plain.op(j));
        assert_eq!((op.verb, op.key), (usual.verb, usual.key), "only lengths differ");
        if op.verb.writes() {
            let before = std::mem::replace(&mut last[op.key as usize], op.length);
            assert_eq!(op.length, if before == 29 { 10 } else { before + 1 });
        } else {
            assert_eq!(op.length, usual.length);
        }
    }
}

#[test]
fn lengths_vary_in_a_range_only() {
    let range: IntegerDistribution = IntegerRange { low: 10, high: 29 }.into();
    let refused = |size: &IntegerDistribution, mix: &str| {
        let mix = parse_mix(mix).expect("a mix");
        let varied =
            Workload { size: size.clone(), mix, vary_lengths: true, ..Workload::default() };
        generate(&varied, &Schedule::closed(10), 1).err().map(|error| error.to_string())
    };
    assert_eq!(refused(&range, "get=1,set=1"), None);
    for size in [IntegerDistribution::fixed(100), "lognormal:200:1.2".parse().expect("a size")] {
        let error = refused(&size, "get=1,set=1").expect("no range");
        assert!(error.contains("--size LOW..HIGH"), "{error}");
    }
    let error = refused(&range, "get=1,mset=1").expect("an mset");
    assert!(error.contains("mset"), "{error}");
}
