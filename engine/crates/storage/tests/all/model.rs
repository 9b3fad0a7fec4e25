//! The store, compared with simple models, with simulated time.

use cachemark_properties::NOW_S;
use cachemark_properties::store::{
    Action, Verb, counters_add_up, evicts_or_matches_a_map, matches_a_map,
};
use cachemark_storage::Mode;
use proptest::prelude::*;

fn exptime() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0_i64),
        1 => Just(-1),
        3 => 1..4_i64,
        // An instant: in the past, or some seconds after the start.
        2 => (-3..6_i64).prop_map(|ahead| i64::from(NOW_S) + ahead),
    ]
}

fn bytes(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (any::<u8>(), 0..bytes_max).prop_map(|(byte, length)| vec![byte; length]),
        "[0-9]{1,4}".prop_map(String::into_bytes),
        Just(u64::MAX.to_string().into_bytes()),
        " {0,2}[0-9]{1,3} {0,2}".prop_map(String::into_bytes),
    ]
}

fn action(keys: u8, bytes_max: usize) -> impl Strategy<Value = Action> {
    let mode = proptest::sample::select(vec![
        Mode::Set,
        Mode::Add,
        Mode::Replace,
        Mode::Append,
        Mode::Prepend,
    ]);
    let verb = prop_oneof![
        6 => (mode, any::<u32>(), exptime(), bytes(bytes_max))
            .prop_map(|(mode, flags, exptime, value)| Verb::Store(mode, flags, exptime, value)),
        2 => (any::<bool>(), bytes(bytes_max)).prop_map(|(right, value)| Verb::CompareAndSwap(right, value)),
        5 => Just(Verb::Get),
        1 => exptime().prop_map(Verb::GetAndTouch),
        2 => Just(Verb::Delete),
        3 => (0..2000_u64, any::<bool>()).prop_map(|(delta, up)| Verb::Arithmetic(delta, up)),
        1 => exptime().prop_map(Verb::Touch),
        1 => (-1..3_i64).prop_map(Verb::Flush),
        2 => (0..3_u32).prop_map(Verb::Wait),
    ];
    (0..keys, verb).prop_map(|(key, verb)| Action { key, verb })
}

proptest! {
    #[test]
    fn the_store_matches_a_map(actions in proptest::collection::vec(action(6, 40), 0..200)) {
        matches_a_map(actions);
    }

    #[test]
    fn a_small_store_evicts_or_matches_a_map(
        actions in proptest::collection::vec(action(60, 5000), 0..200),
    ) {
        evicts_or_matches_a_map(actions);
    }

    /// The counters are correct, and the memory limit holds.
    #[test]
    fn items_are_those_stored_minus_those_removed(
        uses in proptest::collection::vec((0..400_u16, 0..3000_usize, 0..10_u8), 1..2000),
    ) {
        counters_add_up(uses);
    }
}
