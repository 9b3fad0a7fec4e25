//! The formulas of an M/G/1 queue beside a queue that is played.

use cachemark_fleet::Thread;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};

const REQUESTS: usize = 2_000_000;

/// The waits of requests that come at random, in ascending order.
fn waits(rate: f64, service: impl Fn(&mut ChaCha8Rng) -> f64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut now, mut free_at) = (0.0f64, 0.0f64);
    let mut waits = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let gap: f64 = Exp1.sample(&mut random);
        now += gap / rate;
        let begins = now.max(free_at);
        waits.push(begins - now);
        free_at = begins + service(&mut random);
    }
    waits.sort_unstable_by(f64::total_cmp);
    waits
}

/// Service times with this squared coefficient of variation: a gamma law.
fn service(cv2: f64) -> impl Fn(&mut ChaCha8Rng) -> f64 {
    let law = (cv2 > 0.0).then(|| Gamma::new(1.0 / cv2, cv2).unwrap());
    move |random| 1e-5 * law.map_or(1.0, |law| law.sample(random))
}

#[test]
fn waits_are_those_of_a_played_queue() {
    // The larger the queue, the less a number of requests tells about its waits.
    for (service_cv2, uses) in [
        (0.0, &[0.05, 0.3, 0.7][..]),
        (0.25, &[0.1, 0.3, 0.7]),
        (1.0, &[0.1, 0.3, 0.7]),
        (4.0, &[0.3, 0.6]),
    ] {
        for used in uses {
            let thread = Thread { rate: used * 1e5, service_s: 1e-5, service_cv2 };
            let played = waits(thread.rate, service(service_cv2));
            let mean = played.iter().sum::<f64>() / played.len() as f64;
            let formula = thread.mean_wait_s().unwrap();
            assert!((formula / mean - 1.0).abs() < 0.05, "{thread:?}: {formula} {mean}");
            let wait = played[REQUESTS / 100 * 99];
            let formula = thread.wait_exceeded_s(0.01).unwrap();
            assert!((formula / wait - 1.0).abs() < 0.06, "{thread:?}: {formula} {wait}");
        }
    }
}

#[test]
fn a_full_thread_has_no_finite_wait() {
    let thread = |rate| Thread { rate, service_s: 1e-5, service_cv2: 1.0 };
    assert_eq!(thread(1e5).mean_wait_s(), None);
    assert_eq!(thread(1.2e5).wait_exceeded_s(0.01), None);
    assert_eq!(thread(500.0).wait_exceeded_s(0.01), Some(0.0));
    // Rare queues of times that vary much: two moments say nothing about the longest waits.
    let varied = Thread { service_cv2: 4.0, ..thread(1e4) };
    assert_eq!(varied.wait_exceeded_s(0.01), None);
    assert!(varied.mean_wait_s().is_some());
}
