//! Groups: records of the tape that stay together in one lane, such as one web request.

use crate::check::CaseResult;
use crate::script::{Request, ScriptedReply, after, delays, queue};
use crate::trial::{MS, Trial};

/// One caller plays groups of four. A group lasts as long as its calls: 12 ms, or 30 ms. The end of the
/// trial cuts the last group, which is not counted.
pub fn of_four() -> CaseResult {
    let script = delays(|number| match number % 40 {
        39 => 24 * MS,
        number => [3, 1, 2, 6][number as usize % 4] * MS,
    });
    let trial = Trial::closed(10).ops(500 * 4 + 3).groups(4).with_connections(1, 1).play(script);
    CaseResult::of(trial)
        .groups(500, &[(0.0, 12 * MS), (50.0, 12 * MS), (90.0, 12 * MS), (90.2, 30 * MS)])
}

/// Four calls of a group of eight are in flight at a time, and each takes 1 ms.
pub fn in_flight() -> CaseResult {
    let trial = Trial::closed(10).ops(500 * 8).groups(8).with_connections(1, 4).play(after(MS));
    CaseResult::of(trial).groups(500, &[(0.0, 2 * MS), (50.0, 2 * MS), (100.0, 2 * MS)])
}

/// Replies come one by one, each 1 ms after the last, and the next four calls wait for the fourth. So calls
/// take 1, 2, 3 and 4 ms, and a group of four 4 ms.
pub fn refilled_together() -> CaseResult {
    let trial = Trial::closed(10).ops(500 * 4).groups(4).with_connections(1, 4).refilling_all();
    CaseResult::of(trial.play(queue(|_| MS)))
        .groups(500, &[(0.0, 4 * MS), (100.0, 4 * MS)])
        .response_percentiles(0, &[(25.0, MS), (50.0, 2 * MS), (75.0, 3 * MS), (100.0, 4 * MS)])
}

/// The same without the wait: there are always four outstanding, so each call takes 4 ms, and a group 7 ms.
pub fn refilled_one_by_one() -> CaseResult {
    let trial = Trial::closed(10).ops(500 * 4).groups(4).with_connections(1, 4);
    CaseResult::of(trial.play(queue(|_| MS)))
        .groups(500, &[(1.0, 7 * MS), (100.0, 7 * MS)])
        .response_percentiles(0, &[(1.0, 4 * MS), (100.0, 4 * MS)])
}

/// Each 100th request times out, as the third of its group: that group is not counted.
pub fn with_timeouts() -> CaseResult {
    let script = Box::new(|request: &Request| match request.number % 100 {
        50 => ScriptedReply::Never,
        _ => ScriptedReply::At(request.at_ns + MS),
    });
    let trial = Trial::closed(60).ops(1000 * 4).groups(4).with_connections(1, 1);
    CaseResult::of(trial.timeout(250 * MS).play(script))
        .exactly("timed out", 40, |trial| trial.gets().errors[0])
        .groups(960, &[(0.0, 4 * MS), (50.0, 4 * MS), (100.0, 4 * MS)])
}
