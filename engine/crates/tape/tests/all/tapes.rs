//! Tapes through the public interface: the same seed gives the same bytes, and damaged files are
//! rejected.

use std::collections::HashSet;

use cachemark_tape::{
    Arrivals, IntegerDistribution, IntegerRange, KeyDistribution, KeyShape, Lane, Order, Schedule,
    Tape, Verb, Workload, generate, parse_mix, parse_sequence, value_offset,
};

fn workload() -> Workload {
    Workload {
        keys: 50,
        distribution: KeyDistribution::Zipf(0.99),
        shape: KeyShape::Length(IntegerRange { low: 4, high: 9 }.into()),
        size: IntegerRange { low: 0, high: 40 }.into(),
        mix: parse_mix("get=5,set=2,mget=1,set_noreply=1,version=1,mset=1").expect("a mix"),
        run: 6,
        prefill: 0.5,
        exptime_s: IntegerDistribution::fixed(60),
        ..Workload::default()
    }
}

fn bytes(workload: &Workload, schedule: Schedule, seed: u64) -> Vec<u8> {
    generate(workload, &schedule, seed).expect("a workload that can be made")
}

fn open(workload: &Workload, schedule: Schedule) -> Tape {
    Tape::from_bytes(bytes(workload, schedule, 1)).expect("our own tape")
}

#[test]
fn same_seed_same_bytes() {
    let schedule =
        Schedule::Open { arrivals: Arrivals::Poisson, rate: 1000.0, duration_ns: 1_000_000_000 };
    assert_eq!(bytes(&workload(), schedule, 7), bytes(&workload(), schedule, 7));
    assert_ne!(bytes(&workload(), schedule, 7), bytes(&workload(), schedule, 8));
}

#[test]
fn the_format_and_the_generator_stay_as_they_are() {
    // If these bytes change, every published tape changes: raise the version.
    let tape = bytes(&workload(), Schedule::closed(100), 1);
    let sum = tape.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(format!("{sum:016x}"), "a9c711cd529d5842");
}

#[test]
fn keys_are_unique_and_as_shaped() {
    let shapes = [
        (KeyShape::Length(IntegerRange { low: 4, high: 9 }.into()), 4..=9),
        (KeyShape::Pattern("user:{index:08}".to_owned()), 13..=13),
        (KeyShape::Pattern("{hex:10}".to_owned()), 10..=10),
    ];
    for (shape, lengths) in shapes {
        let tape = open(&Workload { keys: 5000, shape, ..workload() }, Schedule::closed(1));
        let keys: HashSet<&[u8]> = (0..5000).map(|k| tape.key(k)).collect();
        assert_eq!(keys.len(), 5000);
        assert!(keys.iter().all(|key| lengths.contains(&key.len())));
    }
}

#[test]
fn impossible_key_shapes_are_rejected() {
    for shape in [
        KeyShape::Length(IntegerRange { low: 1, high: 1 }.into()),
        KeyShape::Length(IntegerRange { low: 251, high: 251 }.into()),
        KeyShape::Pattern("same".to_owned()),
        KeyShape::Pattern("{hex:1}".to_owned()),
        KeyShape::Pattern("a b{index}".to_owned()),
        KeyShape::Pattern("{nonsense}".to_owned()),
        KeyShape::Pattern("{index".to_owned()),
    ] {
        let refused = Workload { shape: shape.clone(), ..workload() };
        let made = generate(&refused, &Schedule::closed(1), 1);
        assert!(made.is_err(), "{shape:?}");
    }
}

#[test]
fn runs_hold_distinct_keys() {
    let uniform = Workload { distribution: KeyDistribution::Uniform, ..workload() };
    let tape = open(&uniform, Schedule::closed(500));
    let runs = (0..500).map(|j| tape.op(j)).filter(|op| op.verb == Verb::Mget);
    let mut seen = 0;
    for op in runs {
        let keys: HashSet<u32> = tape.run(&op).collect();
        assert_eq!(keys.len(), 6);
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn lanes_share_a_tape_without_gap_or_overlap() {
    let mut played = vec![0; 10];
    for number in 0..3 {
        let mut lane = Lane::new(number, 3, 10, 1).expect("ten records for three lanes");
        loop {
            let (j, pass) = lane.next_record();
            if pass == 1 {
                assert_eq!(j, number, "a lane begins again at its first record");
                break;
            }
            played[j as usize] += 1;
        }
    }
    assert_eq!(played, vec![1; 10]);
    assert!(Lane::new(5, 8, 5, 1).is_none(), "more lanes than records");
}

#[test]
fn compressibility_is_what_deflate_finds() {
    use std::io::Write;
    for wanted in [0.0, 0.3, 0.5, 0.8] {
        let tape = open(&Workload { compressibility: wanted, ..workload() }, Schedule::closed(1));
        let mut deflated =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        deflated.write_all(tape.pool()).expect("memory");
        let left = deflated.finish().expect("memory").len() as f64 / tape.pool().len() as f64;
        assert!((1.0 - left - wanted).abs() < 0.08, "{wanted}: {left}");
    }
}

/// The share of each key, largest first.
fn shares(distribution: KeyDistribution, keys: u32, ops: u64) -> Vec<f64> {
    let drawn = Workload {
        keys,
        distribution,
        shape: KeyShape::Length(IntegerRange { low: 7, high: 7 }.into()),
        mix: parse_mix("get").expect("a mix"),
        ..workload()
    };
    let tape = open(&drawn, Schedule::closed(ops));
    let mut counts = vec![0_u64; keys as usize];
    (0..ops).for_each(|j| counts[tape.op(j).key as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.into_iter().map(|count| count as f64 / ops as f64).collect()
}

#[test]
fn zipf_is_true_zipf() {
    // The shares of the first rank and of the first hundred among 10⁶ keys, from the closed form r^-s /
    // Σ i^-s. The limit is 3.29 standard errors of 10⁶ draws, and a little for sorting by count.
    for (exponent, first, hundred) in [
        (0.9, 0.0329, 0.2115),
        (0.99, 0.0650, 0.3440),
        (1.0, 0.0695, 0.3604),
        (1.2, 0.1895, 0.6829),
    ] {
        let shares = shares(KeyDistribution::Zipf(exponent), 1_000_000, 1_000_000);
        let top: f64 = shares[..100].iter().sum();
        assert!((shares[0] - first).abs() < 0.0015, "{exponent}: {}", shares[0]);
        assert!((top - hundred).abs() < 0.0025, "{exponent}: {top}");
    }
}

#[test]
fn uniform_keys_and_mixes_have_their_shares() {
    let shares = shares(KeyDistribution::Uniform, 10, 1_000_000);
    assert!(shares.iter().all(|share| (share - 0.1).abs() < 0.00163));
    let mixed = Workload { mix: parse_mix("get=9,set=1").expect("a mix"), ..workload() };
    let tape = open(&mixed, Schedule::closed(1_000_000));
    let gets = (0..1_000_000).filter(|j| tape.op(*j).verb == Verb::Get).count() as f64 / 1e6;
    assert!((gets - 0.9).abs() < 0.00163, "{gets}");
}

#[test]
fn poisson_arrivals_are_exponential_and_uncorrelated() {
    let schedule =
        Schedule::Open { arrivals: Arrivals::Poisson, rate: 10_000.0, duration_ns: 10_000_000_000 };
    let tape = open(&workload(), schedule);
    let count = tape.op_count() as f64;
    assert!((count - 100_000.0).abs() < 1040.0, "{count}");
    let times: Vec<f64> = (0..tape.op_count()).map(|j| tape.due_ns(j) as f64).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let moment = |lag: usize| {
        let pairs = gaps.iter().zip(&gaps[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / gaps.len() as f64
    };
    assert!((moment(0).sqrt() / mean - 1.0).abs() < 0.011);
    assert!((moment(1) / moment(0)).abs() < 0.0104);
}

#[test]
fn uniform_arrivals_have_equal_gaps() {
    let schedule =
        Schedule::Open { arrivals: Arrivals::Uniform, rate: 10_000.0, duration_ns: 1_000_000_000 };
    let tape = open(&workload(), schedule);
    assert_eq!(tape.op_count(), 10_000);
    assert_eq!(tape.period_ns(), 1_000_000_000);
    assert!((0..10_000).all(|j| tape.due_ns(j) == j * 100_000));
}

/// (k, L, g, pool_bytes, o) as printed in docs/tape.md.
const VALUE_OFFSETS: [(u32, u32, u8, u64, u64); 9] = [
    (0, 0, 0, 1_048_676, 0),
    (1, 10, 0, 1_048_676, 787_403),
    (2, 100, 0, 1_048_676, 533_989),
    (9_999, 1_000, 0, 1_049_576, 361_644),
    (4_294_967_294, 100, 0, 1_048_676, 532_964),
    (7, 64, 0, 64, 0),
    (4_294_967_294, 1_048_576, 0, 2_097_152, 523_167),
    (8, 100, 1, 1_048_676, 271_849),
    (4_294_967_288, 1_048_576, 3, 2_097_152, 785_318),
];

#[test]
fn values_follow_the_vectors_of_the_document() {
    for (key, length, generation, pool_bytes, offset) in VALUE_OFFSETS {
        let begin = value_offset(key, length, generation, pool_bytes);
        assert_eq!(begin, offset, "{key} {length} {generation} {pool_bytes}");
    }
    let document = include_str!("../../../../../docs/tape.md");
    for (key, length, generation, pool_bytes, offset) in VALUE_OFFSETS {
        let row = format!("| {key} | {length} | {generation} | {pool_bytes} | {offset} |");
        assert!(document.contains(&row), "{row}");
    }
}

#[test]
fn values_are_the_pool_at_the_offset() {
    let tape = open(&workload(), Schedule::closed(1));
    let pool_bytes = tape.pool().len() as u64;
    for (key, length) in [(0_u32, 0_u32), (1, 10), (49, 40), (7, 1)] {
        let begin = value_offset(key, length, 0, pool_bytes) as usize;
        assert_eq!(tape.value(key, length), &tape.pool()[begin..begin + length as usize]);
    }
}

#[test]
fn steep_distributions_still_make_distinct_runs() {
    for (distribution, run) in [(KeyDistribution::Zipf(8.0), 6), (KeyDistribution::Uniform, 50)] {
        let steep = Workload { distribution, run, ..workload() };
        let tape = open(&steep, Schedule::closed(300));
        let runs = (0..300).map(|j| tape.op(j)).filter(|op| op.verb == Verb::Mget);
        let seen = runs
            .map(|op| assert_eq!(tape.run(&op).collect::<HashSet<_>>().len(), usize::from(run)))
            .count();
        assert!(seen > 10);
    }
}

#[test]
fn uniform_schedules_hold_rate_times_duration() {
    for rate in [1, 3, 7, 49, 98, 103, 107, 161, 187, 197, 999, 1_999_u32] {
        let schedule = Schedule::Open {
            arrivals: Arrivals::Uniform,
            rate: f64::from(rate),
            duration_ns: 1_000_000_000,
        };
        let tape = open(&workload(), schedule);
        assert_eq!(tape.op_count(), u64::from(rate), "{rate} a second");
    }
}

#[test]
fn sizes_take_binary_suffixes() {
    assert_eq!("1k..2m".parse(), Ok(IntegerRange { low: 1024, high: 2 << 20 }));
    assert_eq!("0..7".parse(), Ok(IntegerRange { low: 0, high: 7 }));
    for text in ["", "k", "-1", "2..1", "1..", "5m..1k", "4194304k", "1é", "1g"] {
        assert!(text.parse::<IntegerRange>().is_err(), "{text}");
    }
}

#[test]
fn tapes_beyond_memory_are_refused_at_once() {
    let long_runs = Workload { run: 1000, ..workload() };
    for (large, schedule) in [
        (workload(), Schedule::closed(4_000_000_000)),
        (
            workload(),
            Schedule::Open { arrivals: Arrivals::Poisson, rate: 1e9, duration_ns: 3_000_000_000 },
        ),
        (long_runs, Schedule::closed(4_000_000)),
        (Workload { keys: u32::MAX, ..workload() }, Schedule::closed(1)),
    ] {
        let refused = generate(&large, &schedule, 1).expect_err("more than 4 GiB");
        assert!(refused.0.contains("--ops"), "{refused}");
    }
}

fn sequence(text: &str, key_step: u32) -> Workload {
    let steps = parse_sequence(text).expect("a sequence");
    Workload { order: Order::Sequence { steps, key_step }, counters: 2, ..workload() }
}

#[test]
fn a_sequence_is_a_group_and_moves_on() {
    let steps = sequence("set@0 get@1 mget@0-2 incr@1 decr@0 version get", 4);
    let tape = open(&steps, Schedule::closed(13));
    assert_eq!((tape.group(), tape.op_count()), (7, 14), "filled up to whole groups");
    assert_eq!(tape.first_counter(), 48);
    let keys = |j| tape.run(&tape.op(j)).collect::<Vec<u32>>();
    assert_eq!((keys(0), keys(1), keys(2)), (vec![0], vec![1], vec![0, 1, 2]));
    assert_eq!((keys(3), keys(4), keys(5)), (vec![49], vec![48], vec![]));
    assert_eq!((keys(7), keys(8), keys(9)), (vec![4], vec![5], vec![4, 5, 6]));
    assert_eq!(keys(10), vec![49], "counters stay");
    assert_eq!(tape.value(49, 10), b"1000000000");
    assert_eq!(tape.value_length(49), 10);
}

#[test]
fn a_group_stays_in_one_lane() {
    let mut first = Lane::new(1, 3, 20, 2).expect("ten groups for three lanes");
    let played: Vec<_> = (0..8).map(|_| first.next_record()).collect();
    let passes = [(2, 0), (3, 0), (8, 0), (9, 0), (14, 0), (15, 0), (2, 1), (3, 1)];
    assert_eq!(played, passes);
    assert!(Lane::new(10, 11, 20, 2).is_none(), "more lanes than groups");
}

#[test]
fn phases_are_successive_kinds_on_the_same_keys() {
    let mix = parse_mix("set=1,get=1,delete=1").expect("a mix");
    let phases = Workload { mix, order: Order::Phases, ..workload() };
    let tape = open(&phases, Schedule::closed(30));
    for (phase, verb) in [Verb::Set, Verb::Get, Verb::Delete].into_iter().enumerate() {
        for k in 0..10 {
            let op = tape.op(phase as u64 * 10 + k);
            assert_eq!((op.verb, u64::from(op.key)), (verb, k));
        }
    }
    assert!(generate(&phases, &Schedule::closed(31), 1).is_err());
}

#[test]
fn keys_may_be_named() {
    let names: Vec<String> = ["Short", "Sym1-2-3::45"].map(str::to_owned).to_vec();
    let named = Workload { keys: 2, shape: KeyShape::Names(names), run: 2, ..workload() };
    let tape = open(&named, Schedule::closed(1));
    assert_eq!((tape.key(0), tape.key(1)), (&b"Short"[..], &b"Sym1-2-3::45"[..]));
    for names in [vec!["a"], vec!["a", "a"], vec!["a", "b c"], vec!["a", ""]] {
        let shape = KeyShape::Names(names.into_iter().map(str::to_owned).collect());
        let refused = Workload { shape, ..named.clone() };
        assert!(generate(&refused, &Schedule::closed(1), 1).is_err());
    }
}

#[test]
fn sequences_with_unknown_keys_are_rejected() {
    for text in ["get@48", "incr@2", "mget@47-48", "cas@49"] {
        let refused = generate(&sequence(text, 0), &Schedule::closed(1), 1);
        assert!(refused.is_err(), "{text}");
    }
    for text in ["", "get@", "get@0-3", "mget@3-0", "version@0", "nonsense@0", "get@x"] {
        assert!(parse_sequence(text).is_err(), "{text}");
    }
    let uncounted = Workload { mix: parse_mix("incr=1").expect("a mix"), ..workload() };
    assert!(generate(&uncounted, &Schedule::closed(1), 1).is_err());
}

#[test]
fn the_data_set_is_what_a_server_finally_holds() {
    let fixed = |mix: &str, prefill| Workload {
        keys: 100,
        distribution: KeyDistribution::Sequential,
        shape: KeyShape::Length(IntegerDistribution::fixed(20)),
        size: IntegerDistribution::fixed(300),
        mix: parse_mix(mix).expect("a mix"),
        prefill,
        ..Workload::default()
    };
    let data = |workload: &Workload, ops| open(workload, Schedule::closed(ops)).data_set();
    // All keys are stored first, and sets store them again.
    let whole = data(&fixed("set=1,get=1", 1.0), 1000);
    assert_eq!((whole.items, whole.key_bytes, whole.value_bytes), (100, 2000, 30_000));
    // Reads, and replaces of what is not there, store nothing.
    assert_eq!(data(&fixed("get=1,replace=1,delete=1", 0.25), 1000).items, 25);
    for kind in ["set", "add", "fetch", "mset_noreply"] {
        assert_eq!(data(&fixed(&format!("{kind}=1"), 0.0), 4).items.min(4), 4, "{kind}");
    }
}
