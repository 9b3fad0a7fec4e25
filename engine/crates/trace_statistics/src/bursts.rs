//! Bursts: the index of dispersion of requests per window, which is the variance divided by the mean.

use serde::Serialize;

const SCALES_NS: [u64; 6] =
    [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000];
/// With fewer windows a variance says nothing.
const LEAST_WINDOWS: u64 = 20;

/// How unevenly requests come, at one scale: 1 is a Poisson process, more has bursts, less is regular.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dispersion {
    pub window_s: f64,
    pub windows: u64,
    pub mean: f64,
    pub index: f64,
    /// The largest window, as a multiple of the mean.
    pub peak: f64,
}

#[derive(Default)]
pub(crate) struct Bursts {
    scales: [Scale; SCALES_NS.len()],
    last_ns: u64,
    /// All times are multiples of it.
    resolution_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Scale {
    window: u64,
    count: u64,
    windows: Moments,
}

#[derive(Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
    most: u64,
}

impl Bursts {
    pub fn add(&mut self, at_ns: u64, count: u64) {
        if at_ns != self.last_ns {
            self.resolution_ns = greatest_common_divisor(self.resolution_ns, at_ns);
            self.last_ns = at_ns;
        }
        for (scale, width_ns) in self.scales.iter_mut().zip(SCALES_NS) {
            let window = at_ns / width_ns;
            if window != scale.window {
                scale.windows.add(scale.count);
                (scale.window, scale.count) = (window, 0);
            }
            scale.count += count;
        }
    }

    pub fn duration_ns(&self) -> u64 {
        self.last_ns
    }

    /// The step of which all times are multiples; 0 if all are 0.
    pub fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    /// The scales that the times can show, and that have enough windows. The last window of each is not whole.
    pub fn dispersions(&self) -> Vec<Dispersion> {
        let of = |(scale, width_ns): (&Scale, u64)| {
            let windows = scale.window;
            let shown = windows >= LEAST_WINDOWS && width_ns >= self.resolution_ns;
            let number = windows as f64;
            let mean = scale.windows.sum / number;
            (shown && mean > 0.0).then(|| Dispersion {
                window_s: width_ns as f64 / 1e9,
                windows,
                mean,
                index: (scale.windows.squares - number * mean * mean) / (number - 1.0) / mean,
                peak: scale.windows.most as f64 / mean,
            })
        };
        self.scales.iter().zip(SCALES_NS).filter_map(of).collect()
    }
}

impl Moments {
    fn add(&mut self, count: u64) {
        self.sum += count as f64;
        self.squares += (count as f64) * (count as f64);
        self.most = self.most.max(count);
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
