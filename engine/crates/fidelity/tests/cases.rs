//! Every case gives its answer.

use cachemark_fidelity::{CASES, Findings};

#[test]
fn every_case_gives_its_answer() {
    let wrong: Vec<String> = CASES
        .iter()
        .flat_map(|case| {
            let Findings { checks, .. } = (case.play)();
            checks
                .into_iter()
                .filter(|check| !check.holds())
                .map(|check| format!("{}: {:?}", case.id, check))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ids_are_unique() {
    let mut ids: Vec<_> = CASES.iter().map(|case| case.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CASES.len());
}
