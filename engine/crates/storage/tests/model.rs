//! The store against models that are too simple to be wrong, with a clock of their own.

use cachemark_properties::session::NOW_S;
use cachemark_properties::store::{
    Action, Verb, accounts_for_everything, agrees_with_a_map, forgets_or_agrees_with_a_map,
};
use cachemark_storage::Mode;
use proptest::prelude::*;

fn exptime() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0_i64),
        1 => Just(-1),
        3 => 1..4_i64,
        // An instant: already past, or seconds ahead of the beginning.
        2 => (-3..6_i64).prop_map(|ahead| i64::from(NOW_S) + ahead),
    ]
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (any::<u8>(), 0..most).prop_map(|(byte, length)| vec![byte; length]),
        "[0-9]{1,4}".prop_map(String::into_bytes),
        Just(u64::MAX.to_string().into_bytes()),
        " {0,2}[0-9]{1,3} {0,2}".prop_map(String::into_bytes),
    ]
}

fn action(keys: u8, most: usize) -> impl Strategy<Value = Action> {
    let mode = proptest::sample::select(vec![
        Mode::Set,
        Mode::Add,
        Mode::Replace,
        Mode::Append,
        Mode::Prepend,
    ]);
    let verb = prop_oneof![
        6 => (mode, any::<u32>(), exptime(), bytes(most))
            .prop_map(|(mode, flags, exptime, value)| Verb::Store(mode, flags, exptime, value)),
        2 => (any::<bool>(), bytes(most)).prop_map(|(right, value)| Verb::Swap(right, value)),
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
    fn the_store_agrees_with_a_map(actions in proptest::collection::vec(action(6, 40), 0..200)) {
        agrees_with_a_map(actions);
    }

    #[test]
    fn a_small_store_forgets_or_agrees(
        actions in proptest::collection::vec(action(60, 5000), 0..200),
    ) {
        forgets_or_agrees_with_a_map(actions);
    }

    /// Whatever is stored and read: the counts are right, and no more is held than may be.
    #[test]
    fn what_is_held_is_what_was_stored_less_what_left(
        uses in proptest::collection::vec((0..400_u16, 0..3000_usize, 0..10_u8), 1..2000),
    ) {
        accounts_for_everything(uses);
    }
}
