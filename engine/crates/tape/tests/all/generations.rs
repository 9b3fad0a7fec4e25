//! Tapes whose writes of a share of the keys have values of other generations.

use std::collections::HashMap;

use cachemark_tape::{Lane, Op, Schedule, Tape, Think, Verb, Workload, generate, parse_mix};

const LANES: u32 = 3;

fn plain(mix: &str) -> Tape {
    let mix = parse_mix(mix).expect("a mix");
    let workload = Workload { keys: 50, counters: 2, mix, ..Workload::default() };
    let bytes = generate(&workload, &Schedule::closed(3000), 1).expect("it can be made");
    Tape::from_bytes(bytes).expect("our own tape")
}

fn records(tape: &Tape) -> Vec<Op> {
    (0..tape.op_count()).map(|j| tape.op(j)).collect()
}

/// A lane's records of keys that have generations, in order.
fn of_lane(tape: &Tape, number: u32) -> Vec<Op> {
    let lane = Lane::new(u64::from(number), u64::from(LANES), tape.op_count(), tape.group())
        .expect("it has records");
    lane.one_pass().map(|j| tape.op(j)).filter(|op| op.key % 8 == 0).collect()
}

#[test]
fn one_lane_alternates_two_generations_and_others_write_a_third() {
    let tape = plain("get=2,set=2,delete=1").with_generations(LANES, true);
    assert_eq!(tape.generation_lanes(), u64::from(LANES));
    let mut seen = [0; 4];
    for number in 0..LANES {
        let mut last = HashMap::new();
        for op in of_lane(&tape, number) {
            let before = last.get(&op.key).copied().unwrap_or(0);
            let expected = match op.verb {
                Verb::Get => before,
                Verb::Set if op.key / 8 % LANES != number => 1,
                Verb::Set if before == 2 => 3,
                Verb::Set => 2,
                _ => 0,
            };
            assert_eq!(op.generation, expected, "{op:?}");
            seen[usize::from(op.generation)] += 1;
            if op.verb == Verb::Set {
                last.insert(op.key, op.generation);
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn generations_change_nothing_else() {
    let (before, tape) = (plain("get=2,set=2"), plain("get=2,set=2").with_generations(LANES, true));
    for (usual, op) in records(&before).into_iter().zip(records(&tape)) {
        assert_eq!(usual, Op { generation: 0, ..op });
        assert!(op.key % 8 == 0 || op.generation == 0);
    }
}

#[test]
fn where_nobody_owns_a_key_all_write_the_same() {
    let tape = plain("get=2,set=2").with_generations(LANES, false);
    let ops = records(&tape);
    assert!(ops.iter().all(|op| op.generation <= 1));
    assert!(ops.iter().filter(|op| op.verb == Verb::Get && op.generation == 1).count() > 20);
}

#[test]
fn an_mget_tells_the_generation_of_its_first_key() {
    let tape = plain("get=1,mget=2,set=2").with_generations(1, true);
    let (mut last, mut seen) = (HashMap::new(), 0);
    for op in records(&tape) {
        let run: Vec<u32> = tape.run(&op).collect();
        let once = run.iter().filter(|k| **k == run[0]).count() == 1;
        if op.verb == Verb::Set {
            last.insert(op.key, op.generation);
        } else if op.verb == Verb::Mget {
            let of_first = last.get(&run[0]).copied().unwrap_or(0);
            assert_eq!(op.generation, if once { of_first } else { 0 }, "{op:?}");
            seen += usize::from(op.generation > 0);
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_write_without_a_reply_has_a_generation_too() {
    let tape = plain("get=2,set_noreply=2").with_generations(LANES, true);
    let seen =
        |generation| records(&tape).iter().any(|op| op.noreply && op.generation == generation);
    assert!([1, 2, 3].into_iter().all(seen));
}

#[test]
fn operations_with_times_have_generations_too() {
    let mix = parse_mix("get=2,set=2").expect("a mix");
    let workload = Workload { keys: 50, mix, ..Workload::default() };
    let schedule = Schedule::Closed { ops: 3000, think: Think::Fixed { ns: 1000 } };
    let bytes = generate(&workload, &schedule, 1).expect("it can be made");
    let tape = Tape::from_bytes(bytes).expect("our own tape").with_generations(1, true);
    assert!(tape.is_timed());
    assert_eq!(tape.generation_lanes(), 1);
}

#[test]
fn keys_that_are_stored_otherwise_have_none() {
    for other in ["add", "replace", "cas", "fetch", "mset"] {
        let tape = plain(&format!("get=1,set=1,{other}=8")).with_generations(1, true);
        assert_eq!(tape.generation_lanes(), 0, "{other}");
        assert!(records(&tape).iter().all(|op| op.generation == 0), "{other}");
    }
}

#[test]
fn a_read_may_bring_what_a_later_write_left() {
    let tape = plain("get=2,set=2").with_generations(1, true);
    let of = |generation| tape.value_of(8, 100, generation);
    let allowed = |told| [0, 1, 2, 3].map(|g| g == told || tape.allows(8, of(g), told));
    assert_eq!(allowed(0), [true; 4]);
    assert_eq!(allowed(1), [false, true, true, true]);
    assert_eq!(allowed(2), [false, true, true, false]);
    assert_eq!(allowed(3), [false, true, false, true]);
    assert!(!tape.allows(8, tape.value(16, 100), 0));
    tape.accept_any_generation();
    assert_eq!(allowed(2), [true; 4]);
}

#[test]
fn without_generations_there_is_one_value() {
    let tape = plain("get=2,set=2");
    assert!(!tape.allows(8, tape.value_of(8, 100, 1), 0));
}
