//! Predictions from a part of the keys beside exact ones, and the rule for fills.

use cachemark_miss_ratio::{
    Fill, Fills, Hottest, Memcached, Operation, Plan, Point, Policy, Prediction, Predictor, Ratio,
    Release, Request, SlabClasses, Step, Task, item_bytes,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

fn hash(key: u64) -> u64 {
    let mut hash = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 27)
}

fn get(key: u64, at_s: u32, value_bytes: u32, ttl_s: u32) -> Request {
    Request {
        hash: hash(key),
        at_s,
        ttl_s,
        value_bytes,
        key_bytes: 20,
        operation: Operation::Get,
        succeeded: None,
    }
}

/// Gets by Zipf's law; sizes belong to keys; some expire.
fn requests(exponent: f64, keys: u64, count: usize, ttl_s: u32) -> Vec<Request> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let law = Zipf::new(keys as f64, exponent).unwrap();
    let mut requests = Vec::with_capacity(count);
    for number in 0..count {
        let key = law.sample(&mut random) as u64;
        let at_s = (number / 1000) as u32;
        let size = 50 + (hash(key) >> 32) as u32 % 1000;
        let mut request = get(key, at_s, size, 0);
        if random.random_ratio(1, 20) || number < 1000 {
            request.operation = Operation::Set;
            request.ttl_s = if key.is_multiple_of(2) { ttl_s } else { 0 };
        }
        requests.push(request);
    }
    requests
}

fn plan(sizes: &[u64], policies: &[Policy], part: f64) -> Plan {
    let (sizes, policies) = (sizes.to_vec(), policies.to_vec());
    Plan { sizes, policies, part, follows_enough: false, sampled: 1, warm_up: 0.2 }
}

fn predict(requests: &[Request], sizes: &[u64], policies: &[Policy], part: f64) -> Prediction {
    predict_by(requests, plan(sizes, policies, part))
}

/// Policies that have figures for any part of the keys.
const OF_A_PART: [Policy; 2] = [Policy::Embedded, Policy::Lru];

fn misses(point: &Point) -> Ratio {
    point.misses.unwrap_or_else(|| panic!("withheld: {point:?}"))
}

fn predict_by(requests: &[Request], plan: Plan) -> Prediction {
    let mut first = Hottest::default();
    requests.iter().for_each(|request| first.add(request));
    let mut predictor = Predictor::new(plan, first.population());
    requests.iter().for_each(|request| predictor.play(request));
    predictor.prediction()
}

#[test]
fn a_part_of_the_keys_predicts_what_all_do() {
    for (exponent, ttl_s) in [(0.9, 0), (1.1, 60)] {
        let requests = requests(exponent, 100_000, 200_000, ttl_s);
        let sizes: Vec<u64> = (0..5).map(|step| (2 << 20) << step).collect();
        let all = predict(&requests, &sizes, &OF_A_PART, 1.0);
        let part = predict(&requests, &sizes, &OF_A_PART, 0.4);
        assert!(part.hot_keys > 10 && all.hot_keys == 0);
        for (exact, sampled) in all.curves.iter().zip(&part.curves) {
            let differences = exact.points.iter().zip(&sampled.points).map(|(exact, sampled)| {
                let (of_all, of_part) = (misses(exact), misses(sampled));
                let difference = (of_all.value - of_part.value).abs();
                assert_eq!(of_part.error > 0.0, sampled.part < 1.0);
                let error = of_all.error + of_part.error;
                assert!(difference < 4.0 * error + 0.02, "{exact:?} {sampled:?}");
                difference
            });
            let mean = differences.sum::<f64>() / sizes.len() as f64;
            println!(
                "{:?} of {exponent}: mean difference {:.3} points",
                exact.policy,
                100.0 * mean
            );
            assert!(mean < 0.01, "{:?}: {mean}", exact.policy);
        }
    }
}

/// The same requests, of other keys.
fn chosen(requests: &[Request], choice: u64) -> Vec<Request> {
    let chosen = |request: &Request| Request { hash: hash(request.hash ^ choice), ..*request };
    requests.iter().map(chosen).collect()
}

/// Choices of a fiftieth of the keys: their differences from all keys, and their told errors, at five sizes.
#[test]
fn a_small_part_is_near_and_says_how_near() {
    let requests = requests(0.8, 100_000, 400_000, 0);
    let sizes: Vec<u64> = (0..5).map(|step| (4 << 20) << step).collect();
    let exact = predict(&requests, &sizes, &[Policy::Lru], 1.0);
    let (mut apart, mut told) = (0.0, 0.0);
    for choice in 0..5 {
        let sampled = predict(&chosen(&requests, choice), &sizes, &[Policy::Lru], 0.02);
        for (exact, sampled) in exact.curves[0].points.iter().zip(&sampled.curves[0].points) {
            apart += 4.0 * (misses(exact).value - misses(sampled).value).abs();
            told += 4.0 * misses(sampled).error;
        }
    }
    assert!(apart < 0.25, "{apart:.3} points, told {told:.3}");
    assert!((0.6 * told..1.2 * told).contains(&apart), "{apart:.3} points, told {told:.3}");
}

/// A quarter of the keys in the embedded server: its least store is as large.
#[test]
fn most_figures_of_a_small_cache_are_within_an_error() {
    let (mut within, sizes) = (0, [32 << 20]);
    for ttl_s in [0, 100] {
        let requests = requests(0.6, 100_000, 400_000, ttl_s);
        let figure = |prediction: Prediction| misses(&prediction.curves[0].points[0]);
        let exact = figure(predict(&requests, &sizes, &[Policy::Embedded], 1.0));
        for choice in 0..6 {
            let chosen = chosen(&requests, choice);
            let sampled = figure(predict(&chosen, &sizes, &[Policy::Embedded], 0.02));
            within += u32::from((sampled.value - exact.value).abs() <= sampled.error);
        }
    }
    assert!((7..12).contains(&within), "{within} of 12");
}

#[test]
fn a_trace_with_some_of_the_keys_stands_for_all() {
    let all = requests(0.8, 100_000, 400_000, 0);
    let kept = |request: &&Request| (request.hash >> 50).is_multiple_of(4);
    let part: Vec<Request> = all.iter().filter(kept).copied().collect();
    let sizes = [16 << 20, 48 << 20];
    let exact = predict(&all, &sizes, &OF_A_PART, 1.0);
    let plan = Plan { sampled: 4, ..plan(&sizes, &OF_A_PART, 1.0) };
    let stood_for = predict_by(&part, plan);
    for (of_all, of_part) in exact.curves.iter().zip(&stood_for.curves) {
        for (all, part) in of_all.points.iter().zip(&of_part.points) {
            let (of_all, of_part) = (misses(all), misses(part));
            assert!(of_part.error > 0.0 && part.memory_bytes == all.memory_bytes);
            let difference = (of_all.value - of_part.value).abs();
            assert!(difference < 4.0 * of_part.error, "{all:?} {part:?}");
            assert!(of_part.error < 0.06, "{part:?}");
        }
    }
}

/// Values of 5 to 60 KB: a slab class has 16 to 200 chunks of a page.
fn large_requests() -> Vec<Request> {
    let large = |request: Request| Request {
        value_bytes: 5000 + (request.hash >> 32) as u32 % 55_000,
        ..request
    };
    requests(0.8, 40_000, 100_000, 0).into_iter().map(large).collect()
}

#[test]
fn a_part_shows_memcached_where_it_has_100_mib() {
    let requests = large_requests();
    let sizes = [64 << 20, 200 << 20, 400 << 20];
    let exact = predict(&requests, &sizes, &[Policy::Memcached], 1.0);
    let part = predict(&requests, &sizes, &[Policy::Memcached], 0.3);
    let told = |of: &Prediction| of.curves[0].points.iter().map(|p| p.misses.is_some()).collect();
    let (of_all, of_part): (Vec<bool>, Vec<bool>) = (told(&exact), told(&part));
    assert_eq!((of_all, of_part), (vec![true; 3], vec![false, false, true]));
    assert_eq!(part.curves[0].points[1].least_part, 0.5);
    assert_eq!(part.curves[0].points[0].byte_misses, None);
    let (of_all, of_part) = (&exact.curves[0].points[2], &part.curves[0].points[2]);
    let difference = (misses(of_all).value - misses(of_part).value).abs();
    assert!(difference < 4.0 * misses(of_part).error, "{of_all:?} {of_part:?}");
}

#[test]
fn more_keys_are_followed_where_memcached_needs_them() {
    let sizes = [64 << 20, 200 << 20, 400 << 20];
    let plan =
        Plan { follows_enough: true, ..plan(&sizes, &[Policy::Memcached, Policy::Lru], 0.1) };
    let prediction = predict_by(&large_requests(), plan.clone());
    let parts = |curve: usize| -> Vec<f64> {
        prediction.curves[curve].points.iter().map(|point| point.part).collect()
    };
    assert_eq!((parts(0), parts(1)), (vec![1.0, 0.5, 0.25], vec![0.1; 3]));
    assert!(prediction.curves[0].points.iter().all(|point| point.misses.is_some()));
    // Of a trace with one key of four, no more can be followed than it has.
    let of_quarter = predict_by(&large_requests(), Plan { sampled: 4, ..plan });
    let told: Vec<_> = of_quarter.curves[0].points.iter().map(|p| p.misses.is_some()).collect();
    assert_eq!(told, [false, false, true]);
    assert_eq!(of_quarter.curves[0].points[0].least_part, 6.25);
}

#[test]
fn more_memory_misses_less_and_all_is_the_least() {
    let requests = requests(1.0, 20_000, 300_000, 0);
    let sizes = [1 << 20, 4 << 20, 16 << 20, 256 << 20];
    let prediction = predict(&requests, &sizes, &Policy::ALL, 1.0);
    let lowest: Vec<f64> =
        prediction.curves.iter().map(|curve| misses(&curve.points[3]).value).collect();
    assert!(lowest.iter().all(|misses| (misses - lowest[0]).abs() < 1e-9), "{lowest:?}");
    for curve in &prediction.curves {
        let misses: Vec<f64> = curve.points.iter().map(|point| misses(point).value).collect();
        assert!(misses.is_sorted_by(|a, b| a >= b), "{curve:?}");
        let bytes = |point: &Point| point.byte_misses.map(|of| of.value);
        assert!(curve.points.iter().all(|point| bytes(point).is_some_and(|of| of <= 1.0)));
    }
}

#[test]
fn with_any_memory_new_keys_and_expired_items_miss() {
    let drawn = requests(0.7, 100_000, 300_000, 60);
    let [exact, of_part] = [1.0, 0.2].map(|part| predict(&drawn, &[1 << 40], &[Policy::Lru], part));
    assert_eq!(exact.least_misses, exact.curves[0].points[0].misses);
    let [least, near] = [exact, of_part].map(|of| of.least_misses.unwrap());
    assert!((near.value - least.value).abs() <= 5.0 * near.error, "{near:?} {least:?}");
    // Each key comes three times, an hour apart, when half of the items have expired.
    let of = |n: u32| get(u64::from(n % 1000), 3600 * (n / 1000), 500, 60 * (n % 2));
    let requests: Vec<Request> = (0..3000).map(of).collect();
    let plan = Plan { warm_up: 0.0, ..plan(&[1 << 20], &[Policy::Lru], 1.0) };
    assert_eq!(predict_by(&requests, plan).least_misses.map(|of| of.value), Some(2.0 / 3.0));
}

#[test]
fn the_hottest_keys_come_first_and_are_not_too_many() {
    let mut hottest = Hottest::default();
    // 10,000 keys with two requests each, and one with 100.
    (0..20_000u64).for_each(|number| hottest.add(&get(number % 10_000, 0, 100, 0)));
    (0..100).for_each(|_| hottest.add(&get(77_777, 0, 100, 0)));
    let hot = hottest.population().hot;
    assert_eq!((hot[0].hash, hot.len()), (hash(77_777), 8192));
    assert_eq!(hot[0].charged_bytes, 192);
}

#[test]
fn the_rule_for_fills() {
    let mut fills = Fills::default();
    let mut task = |operation, succeeded, value_bytes| {
        let request = Request { operation, succeeded, value_bytes, ..get(1, 0, 0, 7) };
        fills.step(&request).map(|step| step.task)
    };
    let unknown = u32::MAX;
    // Nothing is known of its size: a miss stays one.
    assert_eq!(task(Operation::Get, Some(true), unknown), Some(Task::Get(None)));
    assert_eq!(task(Operation::Get, Some(false), unknown), Some(Task::Get(None)));
    assert!(matches!(task(Operation::Set, Some(true), 30), Some(Task::Add(_))), "a fill");
    assert!(matches!(task(Operation::Set, Some(true), 40), Some(Task::Set(_))), "an update");
    let Some(Task::Get(Some(fill))) = task(Operation::Get, Some(true), unknown) else {
        panic!("a get that hit is followed by a fill, where it misses");
    };
    assert_eq!((fill.value_bytes, fill.ttl_s), (40, 7));
    assert!(matches!(task(Operation::Set, Some(true), 50), Some(Task::Set(_))));
    assert_eq!(task(Operation::Get, Some(false), unknown), Some(Task::Get(None)));
    assert!(matches!(task(Operation::Add, Some(true), 50), Some(Task::Add(_))));
    let counts = fills.counts;
    assert_eq!((counts.fills, counts.updates), (2, 2));
    assert_eq!((counts.filled_gets, counts.unfilled_gets, counts.gets_without_size), (1, 3, 1));
}

fn played(cache: &mut Memcached, request: Request, fill_bytes: Option<u32>) -> Option<bool> {
    let fill = fill_bytes.map(|value_bytes| Fill { value_bytes, ttl_s: request.ttl_s });
    let task = match (request.operation, fill) {
        (Operation::Set, Some(fill)) => Task::Set(fill),
        _ => Task::Get(fill),
    };
    let Request { hash, at_s, key_bytes, .. } = request;
    cache.play(&Step { hash, number: 0, at_s, key_bytes, value_bytes: fill_bytes, task })
}

/// Keys are read three times every 10 s, and meanwhile more than fits is read once: an LRU would lose them all.
#[test]
fn items_that_were_hit_twice_survive_a_scan() {
    let mut cache = Memcached::new(Release::Since1634, 1 << 20, 1.0);
    let scanned = 885 + 200;
    for round in 0..10 {
        let mut hits = [0; 3];
        for (read, key) in (0..3).flat_map(|read| (0..100).map(move |key| (read, key))) {
            let hit = played(&mut cache, get(key, 10 * round, 0, 0), Some(1000)) == Some(true);
            hits[read] += u32::from(hit);
        }
        // Until COLD has items, their age is 0, and every older item goes there.
        let first = [0, 40, 100][(round as usize).min(2)];
        assert_eq!(hits, [first, 100, 100], "{round}");
        for place in 0..scanned {
            let key = u64::from(1000 + round * scanned + place);
            let at_s = 10 * round + 10 * place / scanned;
            assert_eq!(played(&mut cache, get(key, at_s, 0, 0), Some(1000)), Some(false));
        }
    }
}

/// The first third of large items is read all the time, and new small items need pages: after `end_s`, how many of the
/// first third are left.
fn left_after_moves(release: Release, end_s: u32) -> usize {
    let mut cache = Memcached::new(release, 8 << 20, 1.0);
    for key in 0..300 {
        played(&mut cache, get(key, 0, 0, 0), Some(20_000));
    }
    for at_s in 0..end_s {
        for key in (0..3).flat_map(|_| 0..100) {
            played(&mut cache, get(key, at_s, 0, 0), None);
        }
        for key in 0..2000 {
            played(&mut cache, get(1000 + key + 2000 * u64::from(at_s), at_s, 0, 0), Some(1000));
        }
    }
    let is_left = |key: &u64| played(&mut cache, get(*key, end_s, 0, 0), None) == Some(true);
    (0..100).filter(is_left).count()
}

#[test]
fn pages_that_move_lose_read_items_before_1_6_34() {
    // The automover begins after 10 seconds, and before after 30.
    assert_eq!(left_after_moves(Release::Since1634, 14), 100);
    assert_eq!(left_after_moves(Release::Before1634, 29), 100);
    let left = left_after_moves(Release::Before1634, 34);
    assert!(left < 60, "{left}");
}

#[test]
fn an_item_expires_at_its_second() {
    let mut cache = Memcached::new(Release::Since1634, 1 << 20, 1.0);
    played(&mut cache, Request { operation: Operation::Set, ..get(1, 10, 0, 5) }, Some(100));
    assert_eq!(played(&mut cache, get(1, 14, 0, 0), None), Some(true));
    assert_eq!(played(&mut cache, get(1, 15, 0, 0), None), Some(false));
}

#[test]
fn large_items_take_two_chunks() {
    let mut cache = Memcached::new(Release::Since1634, 4 << 20, 1.0);
    for key in 0..8 {
        played(&mut cache, get(key, 0, 0, 0), Some(600_000));
    }
    assert_eq!(cache.classes().last(), Some(&(8, 4)));
    let held = (0..8).filter(|key| played(&mut cache, get(*key, 0, 0, 0), None) == Some(true));
    assert_eq!(held.count(), 4);
    assert_eq!(played(&mut cache, get(9, 0, 0, 0), Some(1 << 20)), Some(false));
    assert_eq!(played(&mut cache, get(9, 0, 0, 0), None), Some(false));
}

#[test]
fn items_have_the_classes_of_memcached() {
    let slabs = SlabClasses::default();
    let chunks: Vec<u32> = slabs.all().iter().map(|class| class.chunk_bytes).collect();
    assert_eq!(chunks[..8], [96, 120, 152, 192, 240, 304, 384, 480]);
    assert_eq!((chunks.len(), chunks[38]), (39, 524_288));
    assert_eq!(item_bytes(2, 3), 64);
    assert_eq!(slabs.class_of(96), Some(0));
    assert_eq!(slabs.class_of(97), Some(1));
    assert_eq!(slabs.class_of(1 << 21), None);
    assert_eq!(slabs.charged_bytes(100), Some(120));
}

#[test]
fn expired_items_keep_their_memory_until_a_crawl() {
    let mut cache = Memcached::new(Release::Since1634, 64 << 20, 1.0);
    let mut play = |key: u64, at_s: u32, task: Task| {
        let (hash, number, key_bytes) = (hash(key), key as u32, 20);
        let hit = cache.play(&Step { hash, number, at_s, key_bytes, value_bytes: Some(100), task });
        (hit, cache.classes().iter().map(|(used, _)| used).sum::<u64>())
    };
    let stored = |ttl_s| Task::Set(Fill { value_bytes: 100, ttl_s });
    play(1, 1, stored(0));
    for key in 2..100 {
        assert_eq!(play(key, 1, stored(10)), (None, key));
    }
    assert_eq!(play(1, 30, Task::Get(None)), (Some(true), 99));
    assert_eq!(play(2, 30, Task::Get(None)), (Some(false), 98));
    assert_eq!(play(200, 65, Task::Get(None)), (Some(false), 98));
    assert_eq!(play(1, 66, Task::Get(None)), (Some(true), 1));
}
