//! A server that stalls for S in each period P, and then answers the backlog at once. With arrivals
//! that are uniform in time: q_p = S − (1 − p)·P for p above 1 − S/P, and the delay c below it.

use crate::check::{CaseResult, Unit};
use crate::script::{Request, ScriptedReply, delays, stalls, stalls_once};
use crate::trial::{MS, SECOND, Trial, US};

/// The gap between two arrivals, which limits the accuracy.
const GAP_NS: u64 = 100 * US;
const C_NS: u64 = 50 * US;

pub fn each_second() -> CaseResult {
    let trial = Trial::uniform(10_000.0, 60).play(stalls(100 * MS, SECOND, C_NS));
    CaseResult::of(trial)
        .response_percentiles(0, &[(50.0, C_NS), (89.9, C_NS)])
        .response_percentiles(
            GAP_NS,
            &[
                (95.0, C_NS + 50 * MS),
                (99.0, C_NS + 90 * MS),
                (99.9, C_NS + 99 * MS),
                (99.99, C_NS + 99_900 * US),
                (100.0, C_NS + 100 * MS),
            ],
        )
        .mean(5.0 * MS as f64 + C_NS as f64, 0.002)
}

pub fn each_second_poisson() -> CaseResult {
    let trial = Trial::poisson(10_000.0, 60).play(stalls(100 * MS, SECOND, C_NS));
    CaseResult::of(trial).response_percentiles(
        420 * US,
        &[(95.0, C_NS + 50 * MS), (99.0, C_NS + 90 * MS), (99.9, C_NS + 99 * MS)],
    )
}

/// s = 10 µs for each, ρ = 0.1: q_p = S − (1 − p)·P·(1 − ρ) + s; mean wait S² / 2P(1 − ρ).
pub fn drained_one_by_one() -> CaseResult {
    let mut free_ns = 0;
    let stalled = Box::new(move |request: &Request| {
        let mut begin_ns = request.at_ns.max(free_ns);
        if begin_ns % SECOND < 100 * MS {
            begin_ns = begin_ns - begin_ns % SECOND + 100 * MS;
        }
        free_ns = begin_ns + 10 * US;
        ScriptedReply::At(free_ns)
    });
    let trial = Trial::uniform(10_000.0, 20).play(stalled);
    CaseResult::of(trial)
        .response_percentiles(
            GAP_NS,
            &[(90.0, 10 * MS), (95.0, 55 * MS), (99.0, 91 * MS), (99.9, 99_100 * US)],
        )
        .mean(5.5556 * MS as f64 + 10.0 * US as f64, 0.002)
}

/// A caller of a closed loop meets each stall once: its p99 is the delay. It must not be reported as,
/// or corrected to, the 90 ms of an open loop.
pub fn in_a_closed_loop() -> CaseResult {
    let trial = Trial::closed(20).with_connections(1, 1).play(stalls(100 * MS, SECOND, C_NS));
    CaseResult::of(trial)
        .response_percentiles(0, &[(50.0, C_NS), (99.0, C_NS)])
        .exactly("said to be an open loop", 0, |trial| u64::from(trial.open_loop))
        .exactly("times of send lag", 0, |trial| trial.result.metrics.send_lag.len())
}

/// With too few connections, operations wait in the client: the wait is part of the response time, and
/// the number of such operations is reported.
pub fn with_little_room() -> CaseResult {
    let trial =
        Trial::uniform(10_000.0, 20).with_connections(64, 1).play(stalls(100 * MS, SECOND, C_NS));
    // In each of the 20 stalls, 64 of 1,000 arrivals are sent. After it the queue is drained, 64 every
    // 50 µs; operations that arrive meanwhile wait as well.
    let waited_least = 20 * (1000 - 64);
    CaseResult::of(trial)
        .response_percentiles(2 * MS, &[(99.0, 90 * MS)])
        .exactly("most in flight", 64, |trial| trial.result.metrics.max_in_flight)
        .within("waited for a connection", Unit::Count, waited_least as f64, 0.01, |trial| {
            trial.result.metrics.queued as f64
        })
        .service_percentiles(0, &[(90.0, C_NS)])
        // This is no generator lag: the client is ready at each intended start.
        .generator_lag_percentiles(0, &[(100.0, 1)])
}

/// After a stall of 2 ms, 40 replies take 400 µs to read, and an operation is due every 50 µs. It waits
/// for 20 µs, and then for the current read or write.
pub fn at_once() -> CaseResult {
    let io_call_ns = 10 * US;
    let trial = Trial::uniform(20_000.0, 10).io_call_time(io_call_ns);
    let trial = trial.play(stalls(2 * MS, 10 * MS, C_NS));
    CaseResult::of(trial)
        .exactly("waited for a connection", 0, |trial| trial.result.metrics.queued)
        .generator_lag_percentiles(io_call_ns, &[(100.0, 20 * US)])
        .send_lag_percentiles(io_call_ns, &[(100.0, 20 * US)])
}

/// q_p = S − (1 − p)·T for p above 1 − S/T.
pub fn once() -> CaseResult {
    let c_ns = 10 * US;
    let script = stalls_once(30 * SECOND, 32 * SECOND, c_ns);
    let trial = Trial::uniform(1_000.0, 60).with_connections(64, 4096).play(script);
    CaseResult::of(trial)
        .response_percentiles(0, &[(50.0, c_ns), (96.6, c_ns)])
        .response_percentiles(
            MS,
            &[
                (97.0, 200 * MS),
                (99.0, 1400 * MS),
                (99.9, 1940 * MS),
                (99.99, 1994 * MS),
                (100.0, 2000 * MS),
            ],
        )
}

/// Gil Tene's example: half of all arrivals fall into the stall.
pub fn half_of_the_time() -> CaseResult {
    let script = stalls_once(100 * SECOND, 200 * SECOND, MS);
    let trial = Trial::uniform(100.0, 200).with_connections(64, 1024).timeout(300 * SECOND);
    // Operations that are due in the first 10 ms of the stall take longer than the highest value of a
    // histogram.
    CaseResult::of(trial.play(script))
        .response_percentiles(0, &[(25.0, MS), (50.0, MS)])
        .response_percentiles(
            10 * MS + MS,
            &[(75.0, 50 * SECOND), (99.0, 98 * SECOND), (99.99, 99_980 * MS)],
        )
        .exactly("times above 100 s", 1, |trial| trial.result.metrics.overflow)
}

/// Slow operations that delay no others: p98.5 is 1 ms. A histogram that is "corrected" for an interval
/// of 10 ms would report 90 ms.
pub fn independent() -> CaseResult {
    let script = delays(|number| if number % 100 == 99 { 100 * MS } else { MS });
    let trial = Trial::uniform(10_000.0, 20).with_connections(128, 1).play(script);
    CaseResult::of(trial)
        .response_percentiles(0, &[(95.0, MS), (98.5, MS), (99.5, 100 * MS)])
        .exactly("waited for a connection", 0, |trial| trial.result.metrics.queued)
}
