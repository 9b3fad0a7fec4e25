//! The result of a run.

use cachemark_tape::Tape;

use super::slices::SliceTotals;
use crate::connection::Wire;
use crate::player::Player;
use crate::record::{LoggedCalls, Metrics, Sections};

/// The result of one phase.
pub struct RunResult {
    pub metrics: Metrics,
    pub elapsed_ns: u64,
    pub send_elapsed_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    /// Slices: operations that were played and not counted.
    pub lead_in: Option<Metrics>,
    /// Only if the length of the window was known and no intervals were taken.
    pub sections: Option<Sections>,
    /// The calls of each thread, if they were logged.
    pub calls: Vec<LoggedCalls>,
}

impl RunResult {
    /// The sum over several players of one tape.
    pub fn of<W: Wire>(players: &[Player<'_, W>], tape: &Tape) -> RunResult {
        let parts = players.iter().map(|player| (player.metrics(), player.elapsed_ns()));
        RunResult::of_parts(&parts.collect::<Vec<_>>(), tape)
    }

    /// Of each player the metrics, and when it ended and sent the last time.
    fn of_parts(parts: &[(&Metrics, (u64, u64))], tape: &Tape) -> RunResult {
        let mut metrics = Metrics::new(tape, 0);
        let (mut elapsed_ns, mut send_elapsed_ns) = (0, 0);
        for (part, (elapsed, sent)) in parts {
            metrics.add(part);
            elapsed_ns = elapsed_ns.max(*elapsed);
            send_elapsed_ns = send_elapsed_ns.max(*sent);
        }
        let sections = Sections::of(parts.iter().map(|(part, _)| *part));
        RunResult {
            metrics,
            elapsed_ns,
            send_elapsed_ns,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            lead_in: None,
            sections,
            calls: Vec::new(),
        }
    }

    /// The sum over the players of slices: of each the metrics that count, and the lead-ins' metrics.
    pub(crate) fn of_slices(parts: Vec<(Metrics, Metrics)>, totals: &SliceTotals) -> RunResult {
        let (mut metrics, mut lead_in) = (Metrics::empty(0), Metrics::empty(0));
        for (counted, not_counted) in parts {
            metrics.add(&counted);
            lead_in.add(&not_counted);
        }
        RunResult {
            metrics,
            elapsed_ns: totals.elapsed_ns,
            send_elapsed_ns: totals.elapsed_ns,
            cpu_user_ns: totals.cpu_user_ns,
            cpu_system_ns: totals.cpu_system_ns,
            lead_in: Some(lead_in),
            sections: None,
            calls: Vec::new(),
        }
    }
}
