//! The universal scalability law, from rates that follow it.

use cachemark_fleet::{Measured, Scalability};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

const SIZES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

fn rate(size: f64, (one, contention, coherence): (f64, f64, f64)) -> f64 {
    one * size / (1.0 + contention * (size - 1.0) + coherence * size * (size - 1.0))
}

fn measured(sizes: &[f64], law: (f64, f64, f64), off: impl Fn() -> f64) -> Vec<Measured> {
    sizes.iter().map(|size| Measured { size: *size, rate: rate(*size, law) * off() }).collect()
}

proptest! {
    #[test]
    fn exact_rates_give_their_law(
        one in 1e3..1e6f64, contention in 0.0..0.5f64, coherence in 0.0..0.01f64,
    ) {
        let law = (one, contention, coherence);
        let found = Scalability::fit(&measured(&SIZES, law, || 1.0)).expect("six sizes");
        prop_assert!((found.one / one - 1.0).abs() < 1e-6);
        prop_assert!((found.contention - contention).abs() < 1e-6);
        prop_assert!((found.coherence - coherence).abs() < 1e-6);
        let beyond = found.rate(64.0);
        prop_assert!((beyond.rate / rate(64.0, law) - 1.0).abs() < 1e-5);
        if coherence > 1e-4 {
            let peak = found.peak().expect("a peak");
            prop_assert!(found.rate(peak).rate >= found.rate(peak * 1.1).rate);
            prop_assert!(found.rate(peak).rate >= found.rate((peak * 0.9).max(1.0)).rate);
        }
    }
}

#[test]
fn errors_are_those_of_repeated_measurements() {
    let law = (1e5, 0.05, 0.001);
    let off = Normal::new(1.0, 0.03).unwrap();
    let (mut squares, mut errors) = (0.0, 0.0);
    for seed in 0..400 {
        let random = std::cell::RefCell::new(ChaCha8Rng::seed_from_u64(seed));
        let rates = measured(&SIZES, law, || off.sample(&mut *random.borrow_mut()));
        let found = Scalability::fit(&rates).unwrap().rate(24.0);
        squares += (found.rate / rate(24.0, law) - 1.0).powi(2);
        errors += (found.error.unwrap() / found.rate).powi(2);
    }
    // The told error, beside the true one.
    let ratio = (errors / squares).sqrt();
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn few_sizes_have_no_law_and_three_no_error() {
    let law = (1000.0, 0.1, 0.01);
    assert_eq!(Scalability::fit(&measured(&[1.0, 2.0, 2.0], law, || 1.0)), None);
    let three = Scalability::fit(&measured(&[1.0, 2.0, 4.0], law, || 1.0)).unwrap();
    assert_eq!(three.rate(8.0).error, None);
}

#[test]
fn more_than_linear_growth_is_no_negative_contention() {
    let rates = [(1.0, 100.0), (2.0, 220.0), (4.0, 500.0), (8.0, 1100.0)];
    let rates: Vec<_> =
        rates.iter().map(|(size, rate)| Measured { size: *size, rate: *rate }).collect();
    let found = Scalability::fit(&rates).unwrap();
    assert_eq!((found.contention, found.coherence, found.peak()), (0.0, 0.0, None));
}
