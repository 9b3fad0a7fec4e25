//! The cases can fail: each of these bugs, injected into the client, makes the cases beside it fail.

use cachemark_fidelity::{CASES, Case, Check};
use cachemark_injected_bugs::{Bug, with_bug};

const CAUGHT_BY: [(Bug, &[&str]); 20] = [
    (Bug::SendStamp, &["F5d", "F20"]),
    (Bug::DroppedInFlight, &["F12", "F15"]),
    (Bug::DroppedTimeouts, &["F16"]),
    (Bug::DroppedCutOff, &["F16 depth"]),
    (Bug::AveragedPercentiles, &["F24"]),
    (Bug::CorrectedHistogram, &["F8", "F6"]),
    (Bug::UnflaggedLimit, &["F5d"]),
    (Bug::CoarseClock, &["F11", "F14"]),
    (Bug::WallClock, &["F28"]),
    (Bug::TenMicrosecondFloor, &["F23"]),
    (Bug::UniformForPoisson, &["F19"]),
    (Bug::PercentileOneMore, &["F2"]),
    (Bug::PercentileOneLess, &["F2"]),
    (Bug::UnverifiedValues, &["F29"]),
    (Bug::RepliesFirst, &["F20 replies"]),
    (Bug::SilentOverflow, &["F7", "F23"]),
    (Bug::GroupEndsEarly, &["F31"]),
    (Bug::GroupBeginsLate, &["F31"]),
    (Bug::GroupTwice, &["F31"]),
    (Bug::GroupDespiteFailure, &["F31 timeout"]),
];

/// The quantities that are wrong with this bug. A panic of the client counts as well.
fn wrong(case: &Case, bug: Option<Bug>) -> Vec<String> {
    let play = || with_bug(bug, || (case.play)());
    let Ok(case_result) = std::panic::catch_unwind(play) else { return vec!["panic".to_owned()] };
    let wrong = case_result.checks.into_iter().filter(|check| !check.holds());
    wrong.map(|Check { quantity, .. }| quantity).collect()
}

fn find(id: &str) -> &'static Case {
    CASES.iter().find(|case| case.id == id).unwrap_or_else(|| panic!("no case {id}"))
}

#[test]
fn every_injected_bug_is_found() {
    let survived: Vec<String> = CAUGHT_BY
        .iter()
        .flat_map(|(bug, ids)| ids.iter().map(move |id| (*bug, *id)))
        .filter(|(bug, id)| wrong(find(id), Some(*bug)).is_empty())
        .map(|(bug, id)| format!("{bug:?} survives {id}"))
        .collect();
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}

#[test]
fn every_bug_has_a_case() {
    for bug in Bug::ALL {
        assert!(CAUGHT_BY.iter().any(|(caught, _)| *caught == bug), "{bug:?}");
    }
}

/// Which case finds which bug: `cargo test -p cachemark-fidelity injected_bugs -- --ignored --nocapture`.
#[test]
#[ignore = "every case with every bug takes minutes; it prints the whole matrix"]
fn matrix() {
    for bug in Bug::ALL {
        let red: Vec<_> =
            CASES.iter().filter(|case| !wrong(case, Some(bug)).is_empty()).map(|c| c.id).collect();
        println!("{bug:?}: {}", red.join(", "));
        assert!(!red.is_empty(), "{bug:?} survives");
    }
}
