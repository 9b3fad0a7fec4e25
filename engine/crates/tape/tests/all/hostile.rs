//! A damaged file is rejected, or every accessor stays in bounds.

use cachemark_properties::tapes::{POOL_BYTES, put, read_all, refused_or_harmless, small};
use cachemark_tape::Tape;
use proptest::prelude::*;

const HEADER_BYTES: usize = 184;

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
fn a_truncation_with_a_false_length_is_refused_or_harmless() {
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
                refused_or_harmless(&hostile);
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
        refused_or_harmless(&hostile);
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Tape::from_bytes(bytes).is_err());
    }
}
