//! When operations are due: the schedules of open loops, and the think times of closed loops.

use std::str::FromStr;

use cachemark_injected_bugs::{Bug, injected};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1};

use super::error::{WorkloadError, invalid};
use crate::random::{RandomStream, random_stream};

/// When operations are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// Closed loop: `ops` records, each after the reply before it and its think time.
    Closed { ops: u64, think: Think },
    /// Open loop: `rate` operations per second on average, independent of replies.
    Open { arrivals: Arrivals, rate: f64, duration_ns: u64 },
}

/// The gaps between the arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Equal gaps.
    Uniform,
    /// Exponential gaps.
    Poisson,
    /// Generalised Pareto gaps from 0 on with this shape, 0 ≤ shape < 1: a heavier tail than
    /// exponential.
    Gpareto { shape: f64 },
    /// Poisson with two rates (a two-state MMPP). Bursts have `factor` times the mean rate, take
    /// `share` of the time and last `burst_ns` on average. Both states have exponential lengths.
    Bursts { factor: f64, share: f64, burst_ns: f64 },
}

/// The time that a caller of a closed loop waits between a reply and its next operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Think {
    #[default]
    None,
    Fixed {
        ns: u64,
    },
    Exponential {
        mean_ns: f64,
    },
}

/// The maximum number of records on a tape.
const MAX_OPS: f64 = 4e9;
/// The maximum number of bursts: more would take too long to draw.
const MAX_BURSTS: f64 = 1e7;

impl Schedule {
    /// A closed loop without think times.
    pub fn closed(ops: u64) -> Schedule {
        Schedule::Closed { ops, think: Think::None }
    }

    pub fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            Schedule::Closed { ops, .. } => {
                if ops == 0 || ops as f64 > MAX_OPS {
                    return invalid(format!("--ops {ops}: 1 to {MAX_OPS:e}"));
                }
            }
            Schedule::Open { arrivals, rate, duration_ns } => {
                if !(rate.is_finite() && rate > 0.0) {
                    return invalid(format!("--rate {rate}: it must be above 0"));
                }
                let ops = self.expected_ops();
                if !(1.0..=MAX_OPS).contains(&ops) {
                    return invalid(format!(
                        "--rate × --duration makes {ops} operations: 1 to 4e9"
                    ));
                }
                arrivals.check()?;
                arrivals.check_bursts(duration_ns)?;
            }
        }
        Ok(())
    }

    /// About how many records it makes, without making them.
    pub(crate) fn expected_ops(&self) -> f64 {
        match *self {
            Schedule::Closed { ops, .. } => ops as f64,
            Schedule::Open { rate, duration_ns, .. } => rate * duration_ns as f64 / 1e9,
        }
    }

    /// (intended starts in ns, period, number of records)
    pub(crate) fn times(&self, seed: u64) -> (Option<Vec<u64>>, u64, u64) {
        match *self {
            Schedule::Closed { ops, .. } => (None, 0, ops),
            Schedule::Open { arrivals: Arrivals::Uniform, rate, duration_ns } => {
                // This product is exact for whole rates and seconds. A quotient of gaps would not be.
                let count = (rate * duration_ns as f64 / 1e9).floor() as u64;
                let due = |j: u64| (j as f64 * 1e9 / rate).round() as u64;
                let times: Vec<u64> = (0..count).map(due).collect();
                let last = times.last().copied().unwrap_or(0);
                (Some(times), duration_ns.max(last + 1), count)
            }
            Schedule::Open { arrivals, rate, duration_ns } => {
                let times = random_arrivals(arrivals, rate, duration_ns, seed);
                let count = times.len() as u64;
                (Some(times), duration_ns, count)
            }
        }
    }

    /// The think time before each record in ns; `None` if there are no think times.
    pub(crate) fn think_times(&self, count: u64, seed: u64) -> Option<Vec<u64>> {
        let Schedule::Closed { think, .. } = self else { return None };
        let mut rng = random_stream(seed, RandomStream::Times);
        let mut draw = || match *think {
            Think::None => 0,
            Think::Fixed { ns } => ns,
            Think::Exponential { mean_ns } => {
                let gap: f64 = Exp1.sample(&mut rng);
                (gap * mean_ns).round() as u64
            }
        };
        (*think != Think::None).then(|| (0..count).map(|_| draw()).collect())
    }
}

impl Arrivals {
    fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            Arrivals::Gpareto { shape } if !(0.0..1.0).contains(&shape) => invalid(format!(
                "gpareto:{shape}: the shape must be at least 0 and below 1, or the gaps have no mean"
            )),
            Arrivals::Bursts { factor, share, burst_ns } => {
                let proper = factor > 1.0 && share > 0.0 && share < 1.0 && burst_ns >= 1.0;
                if !proper {
                    return invalid(format!(
                        "bursts:{factor}:{share}:…: use a factor above 1, a share of the time \
                         between 0 and 1, and the length of a burst: bursts:5:0.1:100ms"
                    ));
                }
                if factor * share > 1.0 {
                    return invalid(format!(
                        "bursts:{factor}:{share}: {factor} times the rate during {share} of the \
                         time is more than the mean rate: the product must be at most 1"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Arrivals {
    /// Every burst is drawn, even if it has no arrivals.
    fn check_bursts(&self, duration_ns: u64) -> Result<(), WorkloadError> {
        let Arrivals::Bursts { share, burst_ns, .. } = *self else { return Ok(()) };
        let bursts = duration_ns as f64 * share / burst_ns;
        if bursts > MAX_BURSTS {
            return invalid(format!(
                "--schedule bursts: {bursts:e} bursts in --duration, the limit is \
                 {MAX_BURSTS:e}: use longer bursts"
            ));
        }
        Ok(())
    }
}

impl FromStr for Arrivals {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Arrivals, WorkloadError> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
        let arrivals = match parts[..] {
            ["uniform"] => Some(Arrivals::Uniform),
            ["poisson"] => Some(Arrivals::Poisson),
            // The shape of the gaps in Facebook's ETC pool.
            ["gpareto"] => Some(Arrivals::Gpareto { shape: 0.154_971 }),
            ["gpareto", shape] => number(shape).map(|shape| Arrivals::Gpareto { shape }),
            ["bursts", factor, share, length] => {
                let numbers = (number(factor), number(share), parse_duration_ns(length));
                let (Some(factor), Some(share), Some(burst_ns)) = numbers else {
                    return invalid(format!("{text:?}: write bursts:5:0.1:100ms"));
                };
                Some(Arrivals::Bursts { factor, share, burst_ns })
            }
            _ => None,
        };
        let Some(arrivals) = arrivals else {
            return invalid(format!(
                "unknown schedule {text:?}: use closed, uniform, poisson, gpareto:SHAPE or \
                 bursts:FACTOR:SHARE:LENGTH, such as bursts:5:0.1:100ms"
            ));
        };
        arrivals.check().map(|()| arrivals)
    }
}

impl FromStr for Think {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Think, WorkloadError> {
        let (exponential, length) = match text.strip_prefix("exp:") {
            Some(length) => (true, length),
            None => (false, text),
        };
        match parse_duration_ns(length) {
            Some(0.0) => Ok(Think::None),
            Some(mean_ns) if exponential => Ok(Think::Exponential { mean_ns }),
            Some(ns) => Ok(Think::Fixed { ns: ns as u64 }),
            None => {
                invalid(format!("think time {text:?}: write 1ms, or exp:1ms for exponential ones"))
            }
        }
    }
}

/// Parse a duration of at most a day.
fn parse_duration_ns(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, factor) =
        units.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    let ns = number.trim().parse::<f64>().ok()? * factor;
    (0.0..=86_400e9).contains(&ns).then_some(ns)
}

/// Random arrivals in [0, duration): at least one.
fn random_arrivals(arrivals: Arrivals, rate: f64, duration_ns: u64, seed: u64) -> Vec<u64> {
    let mut rng = random_stream(seed, RandomStream::Times);
    let mut times = Vec::with_capacity((rate * duration_ns as f64 / 1e9) as usize + 16);
    let mut gaps = GapSampler::new(arrivals, rate, &mut rng);
    let mut now_ns = 0.0;
    loop {
        now_ns += gaps.next_ns(&mut rng);
        let due = now_ns as u64;
        if due < duration_ns {
            times.push(due);
        } else if times.is_empty() {
            now_ns = 0.0;
        } else {
            return times;
        }
    }
}

/// Draws the gaps between arrivals.
struct GapSampler {
    arrivals: Arrivals,
    rate: f64,
    mean_ns: f64,
    /// For bursts: whether one is active, and the time until the next state.
    bursting: bool,
    left_ns: f64,
}

impl GapSampler {
    fn new(arrivals: Arrivals, rate: f64, rng: &mut ChaCha8Rng) -> GapSampler {
        let mut gaps =
            GapSampler { arrivals, rate, mean_ns: 1e9 / rate, bursting: false, left_ns: 0.0 };
        if let Arrivals::Bursts { share, .. } = arrivals {
            // Start in the stationary distribution.
            gaps.bursting = rng.random_bool(share);
            gaps.left_ns = gaps.sojourn_ns(rng);
        }
        gaps
    }

    fn next_ns(&mut self, rng: &mut ChaCha8Rng) -> f64 {
        match self.arrivals {
            Arrivals::Uniform => self.mean_ns,
            Arrivals::Poisson if injected(Bug::UniformForPoisson) => self.mean_ns,
            Arrivals::Poisson => exponential(rng) * 1e9 / self.rate,
            Arrivals::Gpareto { shape } => {
                // exp(shape · E) is (1 − u)^−shape. The mean of the distribution is scale / (1 −
                // shape).
                let gap = exponential(rng);
                let scale = self.mean_ns * (1.0 - shape);
                if shape == 0.0 { gap * scale } else { (shape * gap).exp_m1() / shape * scale }
            }
            Arrivals::Bursts { .. } => self.next_burst_gap_ns(rng),
        }
    }

    /// Draw an arrival with the rate of the current state. If the state ends before it, time moves on
    /// to the next state, where a new gap is drawn: the exponential distribution has no memory.
    fn next_burst_gap_ns(&mut self, rng: &mut ChaCha8Rng) -> f64 {
        let mut passed_ns = 0.0;
        loop {
            // If a state has no arrivals, its next one is infinitely far away.
            let gap_ns = exponential(rng) * self.mean_ns / self.intensity();
            if gap_ns < self.left_ns {
                self.left_ns -= gap_ns;
                return passed_ns + gap_ns;
            }
            passed_ns += self.left_ns;
            self.bursting = !self.bursting;
            self.left_ns = self.sojourn_ns(rng);
        }
    }

    /// The rate of the current state, as a multiple of the mean rate.
    fn intensity(&self) -> f64 {
        match self.arrivals {
            Arrivals::Bursts { factor, .. } if self.bursting => factor,
            Arrivals::Bursts { factor, share, .. } => (1.0 - factor * share) / (1.0 - share),
            _ => 1.0,
        }
    }

    fn sojourn_ns(&self, rng: &mut ChaCha8Rng) -> f64 {
        let Arrivals::Bursts { share, burst_ns, .. } = self.arrivals else { return 0.0 };
        let mean_ns = if self.bursting { burst_ns } else { burst_ns * (1.0 - share) / share };
        exponential(rng) * mean_ns
    }
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    Exp1.sample(rng)
}
