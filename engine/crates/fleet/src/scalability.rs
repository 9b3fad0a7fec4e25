//! The universal scalability law (Gunther 1993): the rate of a server with N threads, or for N callers.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)): λ is the rate of one, σ the part of the work that waits for its turn
//! (contention), κ the cost of each pair to agree (coherence). N/X is linear in 1, N − 1 and N(N − 1), so it is fitted by
//! least squares of relative differences, with no coefficient below 0.

use serde::Serialize;

const TERMS: usize = 3;
const LEAST_SIZES: usize = 3;

/// A measured rate with `size` threads or callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub size: f64,
    pub rate: f64,
}

/// A rate by the law, and its standard error. `None`: as many coefficients as measured rates show none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LawRate {
    pub rate: f64,
    pub error: Option<f64>,
}

/// The law of some measured rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scalability {
    /// The rate of one.
    pub one: f64,
    pub contention: f64,
    pub coherence: f64,
    #[serde(skip)]
    covariance: Option<[[f64; TERMS]; TERMS]>,
}

fn terms(size: f64) -> [f64; TERMS] {
    [1.0, size - 1.0, size * (size - 1.0)]
}

impl Scalability {
    /// `None` if there are fewer than three sizes.
    pub fn fit(measured: &[Measured]) -> Option<Scalability> {
        let mut sizes: Vec<f64> = measured.iter().map(|of| of.size).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes.dedup();
        if sizes.len() < LEAST_SIZES {
            return None;
        }
        let parts: [&[usize]; 4] = [&[0], &[0, 1], &[0, 2], &[0, 1, 2]];
        let fits = parts.iter().filter_map(|used| LeastSquares::of(measured, used));
        let least = fits
            .filter(|fit| fit.coefficients[0] > 0.0 && fit.coefficients.iter().all(|c| *c >= 0.0))
            .min_by(|one, other| one.residual.total_cmp(&other.residual))?;
        let free = measured.len() - least.used;
        let variance = (free > 0).then(|| least.residual / free as f64);
        let [base, contention, coherence] = least.coefficients;
        Some(Scalability {
            one: 1.0 / base,
            contention: contention / base,
            coherence: coherence / base,
            covariance: variance
                .map(|variance| least.inverse.map(|row| row.map(|each| each * variance))),
        })
    }

    /// The rate of this size.
    pub fn rate(&self, size: f64) -> LawRate {
        let [one, contention, coherence] = terms(size);
        let part = one + self.contention * contention + self.coherence * coherence;
        let rate = self.one * size / part;
        let terms = terms(size);
        // Of N/X, whose relative error is that of X.
        let variance = |of: &[[f64; TERMS]; TERMS]| -> f64 {
            let row = |(row, term): (&[f64; TERMS], &f64)| {
                term * row.iter().zip(&terms).map(|(each, other)| each * other).sum::<f64>()
            };
            of.iter().zip(&terms).map(row).sum()
        };
        let relative =
            self.covariance.as_ref().map(|of| variance(of).max(0.0).sqrt() * rate / size);
        LawRate { rate, error: relative.map(|relative| relative * rate) }
    }

    /// The size above which the rate falls; `None` if it never does.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention).max(0.0) / self.coherence).sqrt();
        (self.coherence > 0.0).then_some(peak.max(1.0))
    }
}

/// Least squares of N/X with some of the terms, by relative differences.
struct LeastSquares {
    coefficients: [f64; TERMS],
    inverse: [[f64; TERMS]; TERMS],
    residual: f64,
    used: usize,
}

impl LeastSquares {
    fn of(measured: &[Measured], used: &[usize]) -> Option<LeastSquares> {
        let mut normal = [[0.0; TERMS]; TERMS];
        let mut right = [0.0; TERMS];
        for of in measured {
            // Divided by N/X: relative differences.
            let scaled = terms(of.size).map(|term| term * of.rate / of.size);
            for row in used {
                right[*row] += scaled[*row];
                for column in used {
                    normal[*row][*column] += scaled[*row] * scaled[*column];
                }
            }
        }
        let inverse = inverse(normal, used)?;
        let coefficients: [f64; TERMS] = std::array::from_fn(|row| {
            inverse[row].iter().zip(&right).map(|(each, other)| each * other).sum()
        });
        let difference = |of: &Measured| {
            let fitted: f64 = terms(of.size).iter().zip(&coefficients).map(|(t, c)| t * c).sum();
            (fitted * of.rate / of.size - 1.0).powi(2)
        };
        let residual = measured.iter().map(difference).sum();
        Some(LeastSquares { coefficients, inverse, residual, used: used.len() })
    }
}

/// The inverse of the rows and columns that are used (Gauss, Jordan); the others are 0.
fn inverse(mut of: [[f64; TERMS]; TERMS], used: &[usize]) -> Option<[[f64; TERMS]; TERMS]> {
    let mut inverse = [[0.0; TERMS]; TERMS];
    used.iter().for_each(|at| inverse[*at][*at] = 1.0);
    for &pivot in used {
        let divisor = of[pivot][pivot];
        if divisor.abs() < f64::MIN_POSITIVE {
            return None;
        }
        for column in 0..TERMS {
            of[pivot][column] /= divisor;
            inverse[pivot][column] /= divisor;
        }
        for &row in used.iter().filter(|row| **row != pivot) {
            let factor = of[row][pivot];
            for column in 0..TERMS {
                of[row][column] -= factor * of[pivot][column];
                inverse[row][column] -= factor * inverse[pivot][column];
            }
        }
    }
    Some(inverse)
}
