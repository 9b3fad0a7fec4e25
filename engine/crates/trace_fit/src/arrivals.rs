//! When requests come: Poisson, or bursts whose index of dispersion is that of the trace at all scales.
//!
//! Bursts are a Poisson process with two rates, whose states have exponential lengths. Its index of dispersion of a window
//! w is 1 + 2 v λ τ (1 − (1 − e^(−w/τ)) τ / w): λ is the mean rate, v the variance of the rate in units of λ², τ the time
//! in which the rate forgets. So v and τ follow from the indices at several windows, and the factor from the peaks.

use cachemark_tape::Arrivals;
use cachemark_trace_statistics::Dispersion;

/// Indices that differ from 1 by less mean a Poisson process.
const POISSON_MOST: f64 = 1.3;
const STEPS: i32 = 60;

/// The arrivals for indices of dispersion; `rate` is the mean number of requests a second.
pub fn fit_arrivals(dispersions: &[Dispersion], rate: f64) -> Arrivals {
    if dispersions.iter().all(|each| each.index < POISSON_MOST) {
        return Arrivals::Poisson;
    }
    let (_, variance, forgets_s) = candidates(dispersions, rate)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("there are candidates");
    if variance * rate * forgets_s < POISSON_MOST - 1.0 {
        return Arrivals::Poisson;
    }
    // The mean of a state without its noise: a peak of a window that has one state mostly.
    let whole = dispersions.iter().rfind(|each| each.window_s <= forgets_s);
    let peak = whole.or(dispersions.first()).map_or(1.0, |each| each.peak);
    let factor = peak.max(1.001 * (1.0 + variance));
    let above = (factor - 1.0).powi(2);
    let share = variance / (variance + above);
    Arrivals::Bursts { factor, share, burst_ns: forgets_s / (1.0 - share) * 1e9 }
}

/// Squared errors of the logarithms of indices, with the variance and the time that have them.
fn candidates(dispersions: &[Dispersion], rate: f64) -> impl Iterator<Item = (f64, f64, f64)> {
    let longest_s = dispersions.last().map_or(1.0, |last| last.window_s);
    let shortest_s = dispersions.first().map_or(1.0, |first| first.window_s);
    let times = (0..=STEPS).map(move |step| {
        shortest_s / 10.0
            * (100.0 * longest_s / shortest_s).powf(f64::from(step) / f64::from(STEPS))
    });
    let variance_at = |step| 1e-3 * 1e5f64.powf(f64::from(step) / f64::from(STEPS));
    times.flat_map(move |time| (0..=STEPS).map(move |step| (variance_at(step), time))).map(
        move |(variance, time)| {
            let error = |each: &Dispersion| {
                let model = index(variance, time, rate, each.window_s);
                (model.ln() - each.index.max(1.0).ln()).powi(2)
            };
            (dispersions.iter().map(error).sum(), variance, time)
        },
    )
}

fn index(variance: f64, forgets_s: f64, rate: f64, window_s: f64) -> f64 {
    let part = forgets_s / window_s * -(-window_s / forgets_s).exp_m1();
    1.0 + 2.0 * variance * rate * forgets_s * (1.0 - part)
}
