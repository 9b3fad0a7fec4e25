//! The formulas of an M/G/1 queue beside a queue that is played.

use cachemark_fleet::Thread;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

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

fn exponential(random: &mut ChaCha8Rng) -> f64 {
    let of: f64 = Exp1.sample(random);
    1e-5 * of
}

#[test]
fn waits_are_those_of_a_played_queue() {
    for rate in [30_000.0, 70_000.0] {
        let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
        let thread = |service_cv2: f64| Thread { rate, service_s: 1e-5, service_cv2 };
        let exponential = waits(rate, exponential);
        let (formula, played) = (thread(1.0).mean_wait_s().unwrap(), mean(&exponential));
        assert!((formula / played - 1.0).abs() < 0.05, "{formula} {played}");
        let p99 = exponential[REQUESTS / 100 * 99];
        let formula = thread(1.0).wait_exceeded_s(0.01).unwrap();
        assert!((formula / p99 - 1.0).abs() < 0.05, "{formula} {p99}");
        let constant = waits(rate, |_| 1e-5);
        let (formula, played) = (thread(0.0).mean_wait_s().unwrap(), mean(&constant));
        assert!((formula / played - 1.0).abs() < 0.05, "{formula} {played}");
        // Of constant times, the tail is shorter than an exponential one.
        let p99 = constant[REQUESTS / 100 * 99];
        let formula = thread(0.0).wait_exceeded_s(0.01).unwrap();
        assert!((0.98..1.35).contains(&(formula / p99)), "{formula} {p99}");
    }
}

#[test]
fn a_full_thread_has_no_finite_wait() {
    let thread = |rate| Thread { rate, service_s: 1e-5, service_cv2: 1.0 };
    assert_eq!(thread(1e5).mean_wait_s(), None);
    assert_eq!(thread(1.2e5).wait_exceeded_s(0.01), None);
    assert_eq!(thread(500.0).wait_exceeded_s(0.01), Some(0.0));
}
