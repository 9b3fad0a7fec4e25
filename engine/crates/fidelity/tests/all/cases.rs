//! Every case has the expected result.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cachemark_fidelity::{CASES, CaseResult};

#[test]
fn every_case_has_the_expected_result() {
    let next = AtomicUsize::new(0);
    let play_all = || {
        let mut wrong = Vec::new();
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            let CaseResult { checks, .. } = (case.play)();
            let failed = checks.into_iter().filter(|check| !check.holds());
            wrong.extend(failed.map(|check| format!("{}: {check:?}", case.id)));
        }
        wrong
    };
    let wrong = thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let players: Vec<_> = (0..cpus).map(|_| scope.spawn(play_all)).collect();
        players.into_iter().flat_map(|player| player.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ids_are_unique() {
    let mut ids: Vec<_> = CASES.iter().map(|case| case.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CASES.len());
}
