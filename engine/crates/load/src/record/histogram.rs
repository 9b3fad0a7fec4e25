//! Histograms for reports: bounds, percentiles, sums and encoding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cachemark_injected_bugs::{Bug, injected};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// The bounds of every histogram: 1 ns to 100 s with 3 significant digits.
pub const HIGHEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram with these bounds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("fixed bounds that are valid")
}

/// The value at rank ceil(percent / 100 · n), as the highest value of its bucket.
pub fn percentile_ns(histogram: &Histogram<u64>, percent: f64) -> u64 {
    // Fractions such as 0.999 are not exact in binary: stay one part in 10¹² below.
    let rank = (percent / 100.0 * histogram.len() as f64 * (1.0 - 1e-12)).ceil() as u64;
    let rank = rank + u64::from(injected(Bug::PercentileOneMore));
    let rank = rank.saturating_sub(u64::from(injected(Bug::PercentileOneLess)));
    let mut seen = 0;
    for value in histogram.iter_recorded() {
        seen += value.count_since_last_iteration();
        if seen >= rank {
            return histogram.highest_equivalent(value.value_iterated_to());
        }
    }
    histogram.max()
}

/// Add the values of `part` to `sum`.
pub(crate) fn merge(sum: &mut Histogram<u64>, part: &Histogram<u64>) {
    if injected(Bug::AveragedPercentiles) && !sum.is_empty() && !part.is_empty() {
        let mut averaged = histogram();
        let each = (sum.len() + part.len()) / 100;
        for percent in 1..=100 {
            let percent = f64::from(percent);
            let both = percentile_ns(sum, percent) + percentile_ns(part, percent);
            averaged.saturating_record_n(both / 2, each);
        }
        *sum = averaged;
        return;
    }
    if !part.is_empty() {
        sum.add(part).expect("same bounds");
    }
}

/// A histogram in the form of the worker protocol: HdrHistogram V2, deflated, base64. `None` if it is
/// empty.
pub fn encode_histogram(histogram: &Histogram<u64>) -> Option<String> {
    if histogram.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    Some(STANDARD.encode(bytes))
}
