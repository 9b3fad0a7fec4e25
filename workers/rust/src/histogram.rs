//! Encodes histograms: HdrHistogram V2, compressed, base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// A histogram of ns: 1 ns to 100 s, three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("good bounds")
}

/// The text of a histogram; None if it is empty.
pub fn encode(histogram: &Histogram<u64>) -> Option<String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("room in memory");
    (!histogram.is_empty()).then(|| STANDARD.encode(bytes))
}
