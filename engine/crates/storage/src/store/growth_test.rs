//! The cost of the table's growth for each call.

use crate::memory::atomics::LOCKED;
use crate::memory::layout::BUCKET_SLOTS;
use crate::{Mode, Store};

const NOW: u32 = 1_700_000_000;
const ITEMS: usize = 60_000;
/// How many words of the table one call may change, whatever the table's size: the words of two split buckets and of
/// the two new ones, with overflow buckets, and the item's own.
const WORDS_MAX: usize = 2 * 4 * (BUCKET_SLOTS + 1) + 8;

fn words(store: &Store) -> Vec<u64> {
    let region = &store.regions[0];
    let head = region.head();
    let overflow = region.layout.buckets_max;
    let used = head.overflow_used.load(LOCKED) as usize;
    let buckets = (0..2 * ITEMS / BUCKET_SLOTS).chain(overflow..overflow + used + 4);
    buckets.flat_map(|bucket| region.bucket(bucket)).map(|word| word.load(LOCKED)).collect()
}

fn insert(store: &Store, n: usize) {
    store.store(Mode::Set, format!("key-{n}").as_bytes(), 0, 0, b"x", NOW);
}

#[test]
fn no_call_pays_for_more_than_two_splits() {
    let store = Store::new(16 << 20);
    let buckets = || store.regions[0].head().buckets.load(LOCKED);
    let first = buckets();
    let mut most = 0;
    for n in 0..ITEMS {
        let before = (n % 307 == 0).then(|| words(&store));
        let buckets_before = buckets();
        insert(&store, n);
        assert!(buckets() <= buckets_before + 2, "no call splits more than two buckets");
        if let Some(before) = before {
            let changed = before.iter().zip(words(&store)).filter(|(a, b)| **a != *b).count();
            most = most.max(changed);
        }
    }
    assert!(buckets() > 100 * first, "the table has segments_begun: {} buckets", buckets());
    assert!((1..=WORDS_MAX).contains(&most), "{most} words were changed by one call");
    let table_bytes = store.usage(NOW).table_bytes as usize;
    assert!(table_bytes <= ITEMS * 12, "{table_bytes} bytes: hardly a bucket overflows");
}
