//! Decides the reply to each read, and when it is sent. It has no other input than the script and the
//! times of the reads: the same seed and times give the same replies. Times are in ns since the script
//! started.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, LogNormal};

use crate::script::{DelaySpec, Script, Stall};

const NS_IN_MS: f64 = 1e6;
/// A drawn time is at most a week, so that sums stay inside 64 bits.
const MAX_NS: f64 = 7.0 * 86_400e9;

/// The planned reply to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedReply {
    /// The first half of the reply at one time, the rest at another; or everything at once.
    At {
        first_ns: u64,
        last_ns: u64,
        wrong: bool,
    },
    Never,
    /// Close the connection at this time, without a reply.
    Close {
        at_ns: u64,
    },
}

/// The state of a script that is being played.
pub struct ReplyPlanner {
    script: Script,
    delay: DelaySampler,
    service: DelaySampler,
    stall: Option<StallTimes>,
    /// The number of reads so far.
    number: u64,
    /// When the server has served all reads so far.
    free_ns: u64,
}

impl ReplyPlanner {
    pub fn new(script: &Script) -> ReplyPlanner {
        ReplyPlanner {
            script: script.clone(),
            delay: DelaySampler::new(script.delay.as_ref(), script.seed, 0),
            service: DelaySampler::new(script.service.as_ref(), script.seed, 1),
            stall: script.stall.map(StallTimes::of),
            number: 0,
            free_ns: 0,
        }
    }

    /// Start again from the first read.
    pub fn restart(&mut self) {
        *self = ReplyPlanner::new(&self.script);
    }

    /// The delay before a connection is accepted.
    pub fn accept_ns(&self) -> u64 {
        ns(self.script.accept_ms)
    }

    /// Plan the reply to a read on a connection that has answered `answered` reads.
    pub fn next(&mut self, at_ns: u64, answered: u64) -> PlannedReply {
        let number = self.number;
        self.number += 1;
        let (delay_ns, service_ns) = (self.delay.next(number), self.service.next(number));
        let start_ns = self.after_stall(match self.script.service {
            Some(_) => at_ns.max(self.free_ns),
            None => at_ns,
        });
        let served_ns = start_ns + service_ns;
        if self.script.service.is_some() {
            self.free_ns = served_ns;
        }
        if self.script.close_after > 0 && answered >= self.script.close_after {
            return PlannedReply::Close { at_ns: served_ns };
        }
        let nth = |every: u64| every > 0 && (number + 1).is_multiple_of(every);
        if nth(self.script.drop_every) {
            return PlannedReply::Never;
        }
        let (first_ns, last_ns) = match self.script.chunks {
            Some(chunks) => (ns(chunks.first_ms), ns(chunks.last_ms)),
            None => (delay_ns, delay_ns),
        };
        PlannedReply::At {
            first_ns: served_ns + first_ns,
            last_ns: served_ns + last_ns,
            wrong: nth(self.script.wrong_every),
        }
    }

    fn after_stall(&self, at_ns: u64) -> u64 {
        self.stall.as_ref().map_or(at_ns, |stall| stall.end_of_stall(at_ns))
    }
}

struct StallTimes {
    stall_ns: u64,
    period_ns: u64,
    phase_ns: u64,
}

impl StallTimes {
    fn of(stall: Stall) -> StallTimes {
        StallTimes {
            stall_ns: ns(stall.stall_ms),
            period_ns: ns(stall.period_ms).max(1),
            phase_ns: ns(stall.phase_ms),
        }
    }

    /// The end of the stall at this time; the time itself if there is no stall.
    fn end_of_stall(&self, at_ns: u64) -> u64 {
        let Some(since_ns) = at_ns.checked_sub(self.phase_ns) else { return at_ns };
        let into_ns = since_ns % self.period_ns;
        at_ns + self.stall_ns.saturating_sub(into_ns)
    }
}

enum DelayDistribution {
    Constant(u64),
    List(Vec<u64>),
    Exponential(Exp<f64>),
    Lognormal(LogNormal<f64>),
    Bimodal { fast_ns: u64, slow_ns: u64, slow_share: f64 },
}

struct DelaySampler {
    distribution: DelayDistribution,
    random: ChaCha8Rng,
}

impl DelaySampler {
    fn new(times: Option<&DelaySpec>, seed: u64, stream: u64) -> DelaySampler {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        DelaySampler {
            distribution: times.map_or(DelayDistribution::Constant(0), distribution),
            random,
        }
    }

    fn next(&mut self, number: u64) -> u64 {
        match &self.distribution {
            DelayDistribution::Constant(ns) => *ns,
            DelayDistribution::List(list) => list[(number % list.len() as u64) as usize],
            DelayDistribution::Exponential(distribution) => {
                distribution.sample(&mut self.random).min(MAX_NS) as u64
            }
            DelayDistribution::Lognormal(distribution) => {
                distribution.sample(&mut self.random).min(MAX_NS) as u64
            }
            DelayDistribution::Bimodal { fast_ns, slow_ns, slow_share } => {
                if self.random.random::<f64>() < *slow_share { *slow_ns } else { *fast_ns }
            }
        }
    }
}

fn distribution(times: &DelaySpec) -> DelayDistribution {
    match times {
        DelaySpec::Exponential { mean_ms: 0.0 } => DelayDistribution::Constant(0),
        DelaySpec::Lognormal { median_ms: 0.0, .. } => DelayDistribution::Constant(0),
        DelaySpec::Constant { ms } => DelayDistribution::Constant(ns(*ms)),
        DelaySpec::List { ms } => DelayDistribution::List(ms.iter().map(|ms| ns(*ms)).collect()),
        DelaySpec::Exponential { mean_ms } => DelayDistribution::Exponential(
            Exp::new(1.0 / (mean_ms * NS_IN_MS)).expect("a checked mean"),
        ),
        DelaySpec::Lognormal { median_ms, sigma } => {
            let distribution = LogNormal::new((median_ms * NS_IN_MS).ln(), *sigma);
            DelayDistribution::Lognormal(distribution.expect("a checked sigma"))
        }
        DelaySpec::Bimodal { fast_ms, slow_ms, slow_share } => DelayDistribution::Bimodal {
            fast_ns: ns(*fast_ms),
            slow_ns: ns(*slow_ms),
            slow_share: *slow_share,
        },
    }
}

fn ns(ms: f64) -> u64 {
    (ms * NS_IN_MS).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner(text: &str) -> ReplyPlanner {
        ReplyPlanner::new(&Script::parse(text).expect("a script"))
    }

    /// When the replies are sent, in ms, to reads that arrive at `at_ms`.
    fn answers(text: &str, at_ms: &[u64]) -> Vec<f64> {
        let mut planner = planner(text);
        let replies = at_ms.iter().map(|at_ms| match planner.next(at_ms * 1_000_000, 0) {
            PlannedReply::At { last_ns, .. } => last_ns as f64 / 1e6,
            other => panic!("{other:?}"),
        });
        replies.collect()
    }

    /// The delays of `count` simultaneous reads in ms, sorted.
    fn delays(text: &str, count: usize) -> Vec<f64> {
        let mut delays = answers(text, &vec![0; count]);
        delays.sort_by(f64::total_cmp);
        delays
    }

    fn near(measured: f64, expected: f64, share: f64) {
        assert!((measured / expected - 1.0).abs() < share, "{measured}, expected {expected}");
    }

    #[test]
    fn listed_delays_repeat() {
        let list = "delay = { kind = 'list', ms = [1, 2, 30] }";
        assert_eq!(answers(list, &[0, 0, 0, 100]), [1.0, 2.0, 30.0, 101.0]);
    }

    #[test]
    fn a_queue_serves_one_after_the_other() {
        let queue = "service = { kind = 'constant', ms = 10 }";
        assert_eq!(answers(queue, &[0, 5, 100]), [10.0, 20.0, 110.0]);
    }

    #[test]
    fn a_stall_ends_for_all_at_once_and_repeats() {
        let stall = "stall = { stall_ms = 10, period_ms = 100, phase_ms = 50 }";
        assert_eq!(
            answers(stall, &[0, 49, 50, 59, 60, 155, 170]),
            [0.0, 49.0, 60.0, 60.0, 60.0, 160.0, 170.0]
        );
    }

    #[test]
    fn a_queue_drains_after_a_stall() {
        let both = "stall = { stall_ms = 10, period_ms = 100 }
                    service = { kind = 'constant', ms = 1 }";
        assert_eq!(answers(both, &[0, 2, 9, 30]), [11.0, 12.0, 13.0, 31.0]);
    }

    #[test]
    fn a_reply_in_chunks_has_two_times() {
        let mut planner = planner("chunks = { first_ms = 1, last_ms = 11 }");
        let halves = PlannedReply::At { first_ns: 1_000_000, last_ns: 11_000_000, wrong: false };
        assert_eq!(planner.next(0, 0), halves);
    }

    #[test]
    fn faults_are_counted_exactly() {
        let mut planner = planner("drop_every = 100\nwrong_every = 30\nclose_after = 7");
        let mut counts = [0; 4];
        for number in 0..1000 {
            let answered = if number == 500 { 7 } else { 0 };
            counts[match planner.next(number, answered) {
                PlannedReply::At { wrong: false, .. } => 0,
                PlannedReply::At { wrong: true, .. } => 1,
                PlannedReply::Never => 2,
                PlannedReply::Close { .. } => 3,
            }] += 1;
        }
        // Every 300th read is dropped, so that it has no value that could be wrong.
        assert_eq!(counts, [1000 - 30 - 10 - 1, 30, 10, 1]);
    }

    #[test]
    fn drawn_times_follow_their_distribution() {
        const N: usize = 100_000;
        let exponential = delays("delay = { kind = 'exponential', mean_ms = 1 }", N);
        near(exponential[N / 2], 2_f64.ln(), 0.015);
        near(exponential[N * 99 / 100], 100_f64.ln(), 0.03);
        let lognormal = delays("delay = { kind = 'lognormal', median_ms = 1, sigma = 1 }", N);
        near(lognormal[N / 2], 1.0, 0.015);
        near(lognormal[N * 99 / 100], 10.240, 0.05);
        let bimodal = "delay = { kind = 'bimodal', fast_ms = 1, slow_ms = 10, slow_share = 0.1 }";
        let slow = delays(bimodal, N).iter().filter(|ms| **ms == 10.0).count();
        near(slow as f64, N as f64 / 10.0, 0.05);
    }

    #[test]
    fn one_seed_draws_the_same_again_another_does_not() {
        let script =
            |seed: u64| format!("seed = {seed}\ndelay = {{ kind = 'exponential', mean_ms = 1 }}");
        assert_eq!(delays(&script(3), 100), delays(&script(3), 100));
        assert_ne!(delays(&script(3), 100), delays(&script(4), 100));
        let mut again = planner(&script(3));
        let first = again.next(0, 0);
        again.next(0, 0);
        again.restart();
        assert_eq!(again.next(0, 0), first);
    }
}
