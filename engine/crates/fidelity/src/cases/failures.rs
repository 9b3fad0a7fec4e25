//! What goes wrong must be counted, kept in the tail, and told.

use crate::check::{Findings, Unit, Verdict};
use crate::script::{Fate, Request, after, stalls_once};
use crate::trial::{MS, SECOND, Trial, US};
use crate::world::Freeze;

/// A stall from 9.5 s to 11.5 s, a window of 10 s: what is outstanding at its end still counts.
pub fn end_in_a_stall() -> Findings {
    let c_ns = 10 * US;
    let script = stalls_once(9 * SECOND + 500 * MS, 11 * SECOND + 500 * MS, c_ns);
    let played = Trial::uniform(1_000.0, 10).over(64, 4096).play(script);
    Findings::of(played)
        .exactly("operations", 10_000, |played| played.gets().ok)
        .responses(0, &[(50.0, c_ns), (95.0, c_ns)])
        .responses(MS, &[(95.1, 1510 * MS), (99.0, 1900 * MS), (99.9, 1990 * MS)])
}

/// A time-out is an error, and its time stays: it was at least that long.
pub fn timeouts() -> Findings {
    let silent = Box::new(|request: &Request| match request.number % 100 {
        0 => Fate::Never,
        _ => Fate::At(request.at_ns + MS),
    });
    let played = Trial::uniform(1_000.0, 100).over(50, 1).timeout(250 * MS).play(silent);
    Findings::of(played)
        .exactly("timed out", 1000, |played| played.gets().errors[0])
        .exactly("other errors", 0, |played| played.gets().errors[1..].iter().sum())
        .exactly("done", 99_000, |played| played.gets().ok)
        // The last of them is due to time out when the window is over.
        .exactly("reconnects", 999, |played| played.result.metrics.reconnects)
        .responses(0, &[(98.9, MS), (99.5, 250 * MS), (100.0, 250 * MS)])
}

/// The generator is not run for 100 ms each second; the server answers at once. That is no delay
/// of the server's: it is all in the send lag, and the trial is not valid.
pub fn frozen() -> Findings {
    frozen_over(64, 64)
}

/// The same where what has piled up finds no room: that wait is the generator's fault as well, and
/// must not be taken for the server's.
pub fn frozen_without_room() -> Findings {
    frozen_over(64, 1).near("waited for a connection", Unit::Count, 20.0 * 936.0, 0.02, |played| {
        played.result.metrics.queued as f64
    })
}

fn frozen_over(connections: usize, depth: usize) -> Findings {
    let c_ns = 50 * US;
    let freeze = Freeze { length_ns: 100 * MS, period_ns: SECOND };
    let trial = Trial::uniform(10_000.0, 20).over(connections, depth).freeze(freeze);
    let played = trial.play(after(c_ns));
    let gap_ns = 100 * US;
    // At depth 1 it takes a millisecond to send what has piled up.
    let slack_ns = if depth == 1 { MS } else { gap_ns };
    Findings::of(played)
        .responses(slack_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .lags(slack_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .own_lags(gap_ns, &[(95.0, 50 * MS), (99.0, 90 * MS), (99.9, 99 * MS)])
        .services(0, &[(50.0, c_ns), (99.9, c_ns)])
        .verdict(Verdict::Invalid)
}

/// 1 MB, the first byte after 1 ms, the last after 11 ms: a reply is there when it is whole.
pub fn in_halves() -> Findings {
    let script =
        Box::new(|request: &Request| Fate::InHalves(request.at_ns + MS, request.at_ns + 11 * MS));
    let played = Trial::uniform(50.0, 1).over(1, 1).values(1 << 20).play(script);
    Findings::of(played)
        .exactly("operations", 50, |played| played.gets().ok)
        .exactly("bytes", 50 << 20, |played| played.gets().value_bytes)
        .responses(0, &[(0.0, 11 * MS), (100.0, 11 * MS)])
}

/// Wrong values and other keys' values, one of each in 20,000: none is an operation.
pub fn wrong_replies() -> Findings {
    let script = Box::new(|request: &Request| {
        let at_ns = request.at_ns + MS;
        match request.number % 20_000 {
            9_999 => Fate::WrongValue(at_ns),
            19_999 => Fate::WrongKey(at_ns),
            _ => Fate::At(at_ns),
        }
    });
    let played = Trial::uniform(10_000.0, 10).values(100).play(script);
    Findings::of(played)
        .exactly("wrong", 10, |played| played.gets().wrong_values)
        .exactly("done", 99_990, |played| played.gets().ok)
        .responses(0, &[(100.0, MS)])
        .verdict(Verdict::Invalid)
}
