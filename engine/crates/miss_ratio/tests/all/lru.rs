//! The LRU curve against a naive model: a cache for each size, with a list that is searched.

use cachemark_miss_ratio::{
    Fill, Followed, LruCurve, SlabClasses, Stand, Step, Task, WeightTree, item_bytes,
};
use proptest::prelude::*;

const KEY_BYTES: u8 = 10;

/// An LRU cache as one would write it first.
struct NaiveLru {
    limit: u64,
    /// The newest last: key, charged bytes, deadline.
    items: Vec<(u64, u64, u32)>,
}

impl NaiveLru {
    fn play(&mut self, step: &Step) -> Option<bool> {
        self.items.retain(|item| item.2 > step.at_s);
        let place = self.items.iter().position(|item| item.0 == step.hash);
        match step.task {
            Task::Get(fill) => {
                match (place, fill) {
                    (Some(place), _) => self.renew(place),
                    (None, Some(fill)) => self.store(step, fill),
                    (None, None) => {}
                }
                return Some(place.is_some());
            }
            Task::Set(fill) => self.store(step, fill),
            Task::Add(fill) => match place {
                Some(place) => self.renew(place),
                None => self.store(step, fill),
            },
            Task::Replace(fill) if place.is_some() => self.store(step, fill),
            Task::Delete => self.items.retain(|item| item.0 != step.hash),
            Task::Touch(ttl_s) => {
                if let Some(place) = place {
                    self.items[place].2 = until(step.at_s, ttl_s);
                    self.renew(place);
                }
            }
            Task::Use => place.map_or((), |place| self.renew(place)),
            Task::Replace(_) => {}
        }
        None
    }

    fn renew(&mut self, place: usize) {
        let item = self.items.remove(place);
        self.items.push(item);
    }

    fn store(&mut self, step: &Step, fill: Fill) {
        self.items.retain(|item| item.0 != step.hash);
        let charged = SlabClasses::default().charged_bytes(item_bytes(KEY_BYTES, fill.value_bytes));
        self.items.push((step.hash, u64::from(charged.unwrap()), until(step.at_s, fill.ttl_s)));
        while self.items.iter().map(|item| item.1).sum::<u64>() > self.limit {
            self.items.remove(0);
        }
    }
}

fn until(now_s: u32, ttl_s: u32) -> u32 {
    if ttl_s == 0 { u32::MAX } else { now_s + ttl_s }
}

fn step(hash: u64, at_s: u32, task: Task) -> Step {
    Step { hash, number: 0, at_s, key_bytes: KEY_BYTES, value_bytes: Some(100), task }
}

/// Steps as (key, task): gets with and without fills, sets, deletes. All values are of one size.
fn steps(kinds: std::ops::Range<u8>, ttls: &'static [u32]) -> impl Strategy<Value = Vec<Step>> {
    let ttl = prop::sample::select(ttls);
    prop::collection::vec((0u64..40, kinds, ttl, 0u32..2), 1..600).prop_map(|steps| {
        let mut at_s = 0;
        steps
            .into_iter()
            .map(|(key, kind, ttl_s, gap_s)| {
                at_s += gap_s;
                let fill = Fill { value_bytes: 100, ttl_s };
                let task = match kind {
                    0..=5 => Task::Get(Some(fill)),
                    6 => Task::Set(fill),
                    7 => Task::Add(fill),
                    8 => Task::Replace(fill),
                    9 => Task::Use,
                    10 => Task::Delete,
                    _ => Task::Get(None),
                };
                Step {
                    number: key as u32,
                    ..step(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), at_s, task)
                }
            })
            .collect()
    })
}

fn misses_of_both(steps: &[Step], sizes: &[u64]) -> Vec<(f64, f64)> {
    let mut curve = LruCurve::new(sizes);
    let mut naive: Vec<_> =
        sizes.iter().map(|limit| NaiveLru { limit: *limit, items: Vec::new() }).collect();
    let mut misses = vec![0u64; sizes.len()];
    let mut gets = 0;
    for step in steps {
        curve.play(step.number, step, Stand::for_keys(false, 1.0), true);
        for (cache, missed) in naive.iter_mut().zip(&mut misses) {
            *missed += u64::from(cache.play(step) == Some(false));
        }
        gets += u64::from(matches!(step.task, Task::Get(_)));
    }
    let of = |(tally, missed): (cachemark_miss_ratio::Tally, u64)| {
        assert_eq!(tally.reads(), (0, gets));
        let ratio = if gets == 0 { 0.0 } else { missed as f64 / gets as f64 };
        (tally.miss_ratio((gets, 0), Followed { part: 1.0, of_all_keys: true }).value, ratio)
    };
    curve.tallies().into_iter().zip(misses).map(of).collect()
}

// 100 bytes and a key of 10 take a chunk of 192.
const SIZES: [u64; 6] = [192, 384, 1000, 2000, 4000, 100_000];

proptest! {
    /// Where every use of a key stores it in all sizes that do not have it, the curve is exact.
    #[test]
    fn the_curve_is_that_of_caches_of_each_size(steps in steps(0..8, &[0])) {
        for (curve, naive) in misses_of_both(&steps, &SIZES) {
            prop_assert!((curve - naive).abs() < 1e-12, "{curve} {naive}");
        }
    }

    /// Else an item that only larger sizes have takes room in the order of all. The largest size has all of them.
    #[test]
    fn expired_and_deleted_items_miss_at_every_size(steps in steps(0..12, &[0, 1, 5, 20])) {
        let both = misses_of_both(&steps, &SIZES);
        let (curve, naive) = both[SIZES.len() - 1];
        prop_assert!((curve - naive).abs() < 1e-12, "{curve} {naive}");
        let mean: f64 = both.iter().map(|(curve, naive)| (curve - naive).abs()).sum::<f64>() / 6.0;
        prop_assert!(mean < 0.1, "{both:?}");
    }

    #[test]
    fn a_tree_has_the_sums_of_a_vector(
        changes in prop::collection::vec((0usize..3000, 1u64..1000), 1..200), place in 0usize..3000,
    ) {
        let (mut tree, mut plain) = (WeightTree::new(3000), vec![0; 3000]);
        for (at, weight) in &changes {
            tree.add(*at, *weight);
            plain[*at] += *weight;
        }
        tree.subtract(changes[0].0, changes[0].1);
        plain[changes[0].0] -= changes[0].1;
        prop_assert_eq!(tree.behind(place), plain[place + 1..].iter().sum::<u64>());
    }
}
