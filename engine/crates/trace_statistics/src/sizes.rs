//! Sizes in bytes, to three digits.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The sizes of keys or values, by requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeDistribution {
    pub count: u64,
    pub mean: f64,
    pub max: u64,
    /// Parts of all, and the largest size of each part.
    pub quantiles: Vec<(f64, u64)>,
}

pub(crate) struct Sizes {
    histogram: Histogram<u64>,
    sum: u128,
    most: u32,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { histogram: Histogram::new(3).expect("three digits are allowed"), sum: 0, most: 0 }
    }
}

/// The quantiles of a distribution: enough for a picture, and those that are printed.
const PARTS: [f64; 21] = [
    0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
    0.98, 0.99, 0.999, 1.0,
];

impl Sizes {
    pub fn add(&mut self, size: u32, count: u64) {
        self.histogram.record_n(u64::from(size), count).expect("it grows with its values");
        self.most = self.most.max(size);
        self.sum += u128::from(size) * u128::from(count);
    }

    pub fn distribution(&self) -> SizeDistribution {
        let count = self.histogram.len();
        if count == 0 {
            return SizeDistribution::default();
        }
        let most = u64::from(self.most);
        let quantile = |part: f64| self.histogram.value_at_quantile(part).min(most);
        SizeDistribution {
            count,
            mean: self.sum as f64 / count as f64,
            max: most,
            quantiles: PARTS.map(|part| (part, quantile(part))).to_vec(),
        }
    }
}
