//! Tapes of one seed with other numbers of draws: other operations of the same work.

use cachemark_tape::{
    IntegerRange, KeyDistribution, KeyShape, Schedule, Tape, Verb, Workload, generate,
};

#[test]
fn other_draws_have_the_same_keys_sizes_and_popularity() {
    let of = |draws| {
        let workload = Workload {
            keys: 50,
            distribution: KeyDistribution::Zipf(0.99),
            shape: KeyShape::Length(IntegerRange { low: 4, high: 9 }.into()),
            size: IntegerRange { low: 0, high: 40 }.into(),
            draws,
            ..Workload::default()
        };
        let bytes = generate(&workload, &Schedule::closed(20_000), 1).expect("a tape");
        let tape = Tape::from_bytes(bytes).expect("our own tape");
        let mut uses = vec![0; tape.key_count() as usize];
        let single = (0..tape.op_count()).map(|j| tape.op(j)).filter(|op| op.verb == Verb::Get);
        single.for_each(|op| tape.run(&op).for_each(|key| uses[key as usize] += 1));
        let hottest = (0..tape.key_count()).max_by_key(|key| uses[*key as usize]);
        let items: Vec<(Vec<u8>, u32)> =
            (0..tape.key_count()).map(|k| (tape.key(k).to_vec(), tape.value_length(k))).collect();
        (uses, hottest, items)
    };
    let (first, second) = (of(0), of(1));
    assert_ne!(first.0, second.0);
    assert_eq!((first.1, first.2), (second.1, second.2));
}
