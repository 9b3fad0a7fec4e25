//! No file can fool the reader: what is damaged is refused, or every accessor stays in bounds.

use cachemark_tape::{
    Arrivals, Distribution, KeyShape, Law, Schedule, Span, Tape, Workload, generate, parse_mix,
};
use proptest::prelude::*;

const POOL_BYTES: usize = 64;
const HEADER_BYTES: usize = 184;

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize
}

fn put(bytes: &mut [u8], at: usize, number: usize) {
    bytes[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
}

/// A tape with every section, whose pool is cut to 64 bytes so that damage hits what matters.
fn small(timed: bool) -> Vec<u8> {
    let workload = Workload {
        keys: 12,
        distribution: Distribution::Zipf(0.99),
        shape: KeyShape::Length(Span { low: 2, high: 9 }.into()),
        size: Span { low: 0, high: 40 }.into(),
        mix: parse_mix("get=5,set=2,mget=1,set_noreply=1,version=1,mset=1,incr=1,cas=1")
            .expect("a mix"),
        run: 6,
        prefill: 0.5,
        exptime_s: Law::fixed(60),
        counters: 2,
        ..Workload::default()
    };
    let schedule = if timed {
        Schedule::Open { arrivals: Arrivals::Uniform, rate: 1000.0, duration_ns: 40_000_000 }
    } else {
        Schedule::closed(40)
    };
    let mut bytes = generate(&workload, &schedule, 1).expect("a workload that can be made");
    let (pool_at, ops_at) = (u64_at(&bytes, 112), u64_at(&bytes, 120));
    let cut = ops_at - pool_at - POOL_BYTES;
    bytes.drain(pool_at + POOL_BYTES..ops_at);
    put(&mut bytes, 64, POOL_BYTES);
    for field in [16, 120, 128, 136] {
        let number = u64_at(&bytes, field);
        put(&mut bytes, field, number.saturating_sub(cut));
    }
    bytes
}

/// Use everything that a tape offers; an index that is out of bounds would panic.
fn read_all(tape: &Tape) {
    assert!(tape.prefill_count() <= tape.key_count());
    for k in 0..tape.key_count() {
        assert!((1..=250).contains(&tape.key(k).len()));
        assert_eq!(tape.value(k, tape.value_length(k)).len() as u32, tape.value_length(k));
    }
    let mut before_ns = 0;
    for j in 0..tape.op_count() {
        let op = tape.op(j);
        for k in tape.run(&op) {
            tape.key(k);
            let length = if k < tape.first_counter() { op.length as usize } else { 10 };
            assert_eq!(tape.value(k, op.length).len(), length);
        }
        if tape.is_open_loop() {
            assert!((before_ns..tape.period_ns()).contains(&tape.due_ns(j)));
            before_ns = tape.due_ns(j);
        }
    }
}

#[test]
fn the_small_tapes_are_sound() {
    for timed in [false, true] {
        let tape = Tape::from_bytes(small(timed)).expect("an undamaged tape");
        assert_eq!((tape.key_count(), tape.op_count()), (12, 40));
        assert_eq!((tape.pool().len(), tape.is_open_loop()), (POOL_BYTES, timed));
        read_all(&tape);
    }
}

#[test]
fn every_truncation_is_refused() {
    for whole in [small(false), small(true)] {
        for length in 0..whole.len() {
            assert!(Tape::from_bytes(whole[..length].to_vec()).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn a_truncation_that_lies_about_its_length_is_refused_or_harmless() {
    let whole = small(true);
    for length in HEADER_BYTES..whole.len() {
        let mut cut = whole[..length].to_vec();
        put(&mut cut, 16, length);
        assert!(Tape::from_bytes(cut).is_err(), "{length} bytes");
    }
}

#[test]
fn extreme_header_fields_are_refused_or_harmless() {
    let extremes =
        [0, 1, 7, 8, HEADER_BYTES, u32::MAX as usize, 1 << 32, 1 << 60, usize::MAX - 7, usize::MAX];
    for whole in [small(false), small(true)] {
        for field in (16..HEADER_BYTES).step_by(8) {
            for number in extremes {
                let mut hostile = whole.clone();
                put(&mut hostile, field, number);
                if let Ok(tape) = Tape::from_bytes(hostile) {
                    read_all(&tape);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_changed_byte_is_refused_or_harmless(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        timed in any::<bool>(),
    ) {
        thread_local! {
            static WHOLE: [Vec<u8>; 2] = [small(false), small(true)];
        }
        let mut hostile = WHOLE.with(|whole| whole[usize::from(timed)].clone());
        let at = at.index(hostile.len());
        hostile[at] = byte;
        if let Ok(tape) = Tape::from_bytes(hostile) {
            read_all(&tape);
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Tape::from_bytes(bytes).is_err());
    }
}
