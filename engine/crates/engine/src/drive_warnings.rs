//! What kept a run from showing the server, in words: the generator itself, its connections, its
//! sockets.

use cachemark_load::{Session, percentile_ns};

use crate::drive_live::responses;
use crate::drive_table::time;

/// A closed loop whose threads are this busy is limited by them.
const BUSY: f64 = 0.95;

/// Warnings, a sentence each.
pub fn warnings(session: &Session, open_loop: bool, threads: u64) -> Vec<String> {
    let tally = &session.tally;
    let attempts: u64 = tally.kinds().map(|(_, kind)| kind.attempts).sum();
    let mut warnings = Vec::new();
    let busy = (session.cpu_user_ns + session.cpu_system_ns) as f64
        / (session.elapsed_ns.max(1) * threads) as f64;
    // In an open loop a thread spins the last stretch before an operation is due: there its own
    // lateness tells.
    if !open_loop && busy > BUSY {
        warnings.push(format!(
            "the generator was the limit: its threads took {:.0} % of a CPU each; use more --threads",
            busy * 100.0
        ));
    }
    let late_ns = percentile_ns(&tally.late, 99.9);
    let reported_ns = percentile_ns(&responses(tally), 99.9);
    if open_loop && late_ns > (reported_ns / 20).max(100_000) {
        warnings.push(format!(
            "the generator was late by itself, p99.9 {}: use more --threads or CPUs, or a lower rate",
            time(late_ns)
        ));
    }
    if tally.bound > 0 {
        warnings.push(format!(
            "{:.1} % of the operations were due and waited for a connection with room: use more \
             --connections or a higher --depth, if the server is what is measured",
            100.0 * tally.bound as f64 / attempts.max(1) as f64
        ));
    }
    if tally.unsent > 0 {
        warnings.push(format!("{} operations were due and never sent", tally.unsent));
    }
    if tally.blocked > 0 {
        warnings.push(format!(
            "{} writes found the socket's buffer full: the server did not read as fast as was sent",
            tally.blocked
        ));
    }
    warnings
}
