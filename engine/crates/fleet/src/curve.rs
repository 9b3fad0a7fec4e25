//! Misses of one memory, and of a fleet whose servers each have a part of the keys.

/// The share of reads that miss, by memory in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MissCurve {
    /// The smallest memory first.
    points: Vec<(f64, f64)>,
}

impl MissCurve {
    /// A curve through these points. Without memory, all reads miss.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> MissCurve {
        MissCurve { points: points.into_iter().collect() }
    }

    /// The share of reads that miss with `memory_bytes`: on the line between the two next points.
    pub fn misses(&self, memory_bytes: f64) -> f64 {
        let after = self.points.partition_point(|(memory, _)| *memory < memory_bytes);
        let Some(&(above, misses_above)) = self.points.get(after) else {
            return self.least();
        };
        let (below, misses_below) = if after == 0 { (0.0, 1.0) } else { self.points[after - 1] };
        let part = (memory_bytes - below) / (above - below);
        misses_below + part * (misses_above - misses_below)
    }

    /// With all the memory that the trace can use.
    pub fn least(&self) -> f64 {
        self.points.last().map_or(1.0, |(_, misses)| *misses)
    }

    /// The share of a fleet's reads that miss. A server with a part of all keys, chosen by a hash, misses as one with
    /// all keys and as many times the memory (the reason why a sample of the keys shows the curve).
    pub fn fleet_misses(&self, memory_bytes: f64, memory: &[f64], requests: &[f64]) -> f64 {
        let of = |(memory, requests): (&f64, &f64)| match *memory {
            0.0 => requests * self.least(),
            part => requests * self.misses(memory_bytes / part),
        };
        memory.iter().zip(requests).map(of).sum()
    }
}
