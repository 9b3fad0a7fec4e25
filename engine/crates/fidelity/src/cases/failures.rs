//! Failures must be counted, must stay in the tail, and must be reported.

use crate::check::{CaseResult, Unit, Verdict};
use crate::script::{Request, ScriptedReply, after, stalls_once};
use crate::simulated_network::ProcessPause;
use crate::trial::{MS, SECOND, Trial, US};

/// A stall from 9.5 s to 11.5 s in a window of 10 s: operations in flight at its end still count.
pub fn end_in_a_stall() -> CaseResult {
    let c_ns = 10 * US;
    let script = stalls_once(9 * SECOND + 500 * MS, 11 * SECOND + 500 * MS, c_ns);
    let trial = Trial::uniform(1_000.0, 10).with_connections(64, 4096).play(script);
    CaseResult::of(trial)
        .exactly("operations", 10_000, |trial| trial.gets().ok)
        .response_percentiles(0, &[(50.0, c_ns), (95.0, c_ns)])
        .response_percentiles(MS, &[(95.1, 1510 * MS), (99.0, 1900 * MS), (99.9, 1990 * MS)])
}

/// A timeout is an error, and its time is recorded: the operation took at least that long.
pub fn timeouts() -> CaseResult {
    let silent = Box::new(|request: &Request| match request.number % 100 {
        0 => ScriptedReply::Never,
        _ => ScriptedReply::At(request.at_ns + MS),
    });
    let trial = Trial::uniform(1_000.0, 100).with_connections(50, 1).timeout(250 * MS).play(silent);
    CaseResult::of(trial)
        .exactly("timed out", 1000, |trial| trial.gets().errors[0])
        .exactly("other errors", 0, |trial| trial.gets().errors[1..].iter().sum())
        .exactly("done", 99_000, |trial| trial.gets().ok)
        // The last one times out at the end of the window.
        .exactly("reconnects", 999, |trial| trial.result.metrics.reconnects)
        .response_percentiles(0, &[(98.9, MS), (99.5, 250 * MS), (100.0, 250 * MS)])
}

/// A stall of 600 ms, a timeout of 300 ms, and several operations in flight on each connection: when the
/// oldest times out, the younger ones are cut off. Each of them leaves its wait in the histogram. 240
/// of 1,600 operations are due during the stall; their waits are spread evenly up to 300 ms.
pub fn timeouts_of_several() -> CaseResult {
    let script = stalls_once(SECOND, SECOND + 600 * MS, MS);
    let trial = Trial::uniform(400.0, 4).with_connections(4, 64).timeout(300 * MS).play(script);
    CaseResult::of(trial)
        .exactly("recorded times", 1600, |trial| trial.gets().response.len())
        .exactly("answered, timed out or cut off", 1600, |trial| {
            trial.gets().ok + trial.gets().failed()
        })
        .response_percentiles(0, &[(50.0, MS)])
        // Both halves of the stall: (1 − p) · 1600 of 2 · 120 waits are longer.
        .response_percentiles(10 * MS, &[(90.0, 100 * MS), (95.0, 200 * MS), (99.0, 280 * MS)])
}

/// The client does not run for 100 ms of each second; the server answers at once. All of the delay is
/// send lag and none is the server's. The tail is withheld, because the client made it; the median is
/// shown, because the lag cannot have moved it.
pub fn frozen() -> CaseResult {
    frozen_over(64, 64)
}

/// The same with too few connections for the backlog: that wait is the client's fault as well, and must
/// not be counted as the server's.
pub fn frozen_without_room() -> CaseResult {
    frozen_over(64, 1).within("waited for a connection", Unit::Count, 20.0 * 936.0, 0.02, |trial| {
        trial.result.metrics.queued as f64
    })
}

fn frozen_over(connections: usize, depth: usize) -> CaseResult {
    let c_ns = 50 * US;
    let pause = ProcessPause { length_ns: 100 * MS, period_ns: SECOND };
    let trial = Trial::uniform(10_000.0, 20).with_connections(connections, depth).pause(pause);
    let trial = trial.play(after(c_ns));
    let gap_ns = 100 * US;
    // At depth 1 it takes a millisecond to send the backlog.
    let slack_ns = if depth == 1 { MS } else { gap_ns };
    CaseResult::of(trial)
        .response_percentiles(slack_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .send_lag_percentiles(slack_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .generator_lag_percentiles(gap_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .service_percentiles(0, &[(50.0, c_ns), (99.9, c_ns)])
}

/// 1 MB, the first byte after 1 ms and the last after 11 ms: a response ends with its last byte.
pub fn in_halves() -> CaseResult {
    let script = Box::new(|request: &Request| {
        ScriptedReply::InHalves(request.at_ns + MS, request.at_ns + 11 * MS)
    });
    let trial = Trial::uniform(50.0, 1).with_connections(1, 1).values(1 << 20).play(script);
    CaseResult::of(trial)
        .exactly("operations", 50, |trial| trial.gets().ok)
        .exactly("bytes", 50 << 20, |trial| trial.gets().value_bytes)
        .response_percentiles(0, &[(0.0, 11 * MS), (100.0, 11 * MS)])
}

/// Wrong values and values of other keys, one of each in 20,000 replies: none counts as an operation. A value of
/// another key ends its connection.
pub fn wrong_replies() -> CaseResult {
    let script = Box::new(|request: &Request| {
        let at_ns = request.at_ns + MS;
        match request.number % 20_000 {
            9_999 => ScriptedReply::WrongValue(at_ns),
            19_999 => ScriptedReply::WrongKey(at_ns),
            _ => ScriptedReply::At(at_ns),
        }
    });
    let trial = Trial::uniform(10_000.0, 10).values(100).play(script);
    CaseResult::of(trial)
        .exactly("wrong", 5, |trial| trial.gets().wrong_values)
        .exactly("replies of another key", 5, |trial| trial.gets().errors[4])
        // The last one comes at the end of the window.
        .exactly("reconnects", 4, |trial| trial.result.metrics.reconnects)
        .exactly("done", 99_990, |trial| trial.gets().ok)
        .response_percentiles(0, &[(100.0, MS)])
        .verdict(Verdict::Invalid)
}
