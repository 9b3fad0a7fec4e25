//! Whether the hits of a window are those of new operations, or only of a tape that was repeated.

use cachemark_tape::{Dependence, Tape};

/// What is known of the tape, and how much of it was played before the window.
#[derive(Clone, Copy)]
pub struct Repeats {
    op_count: u64,
    depends: Dependence,
    fills: bool,
    /// The warm-up begins at the first operation of the tape, as does the window after it.
    warmed_up: u64,
}

impl Repeats {
    /// `hit_ratio` is the expected one, if the workload makes it: it does not depend on earlier operations.
    pub fn new(tape: &Tape, hit_ratio: Option<f64>) -> Repeats {
        let reuse = tape.reuse();
        // What the server keeps is not known here.
        let depends = hit_ratio.map_or(reuse.lost, |_| Dependence::Never);
        Repeats { op_count: tape.op_count(), depends, fills: reuse.fills, warmed_up: 0 }
    }

    pub fn after_warm_up(self, operations: u64) -> Repeats {
        Repeats { warmed_up: operations, ..self }
    }

    /// Why hits and misses of a window are withheld, if they are: it played so many operations, and so many reads
    /// found nothing.
    pub fn withheld(&self, played: u64, misses: u64) -> Option<String> {
        let always_found = misses == 0 && !self.fills;
        let warm = self.warmed_up == 0 || self.warmed_up >= self.op_count;
        match self.depends {
            Dependence::Never => return None,
            _ if always_found => return None,
            Dependence::Covered if warm => return None,
            _ if self.warmed_up == 0 && played <= self.op_count => return None,
            _ => {}
        }
        let (ops, warmed_up) = (self.op_count, self.warmed_up);
        Some(if warmed_up > 0 && played <= ops {
            format!(
                "hits and misses are withheld: the warm-up played {warmed_up} operations of the tape, and the window \
                 began with the same ones, which find what those stored; use --warmup 0s"
            )
        } else {
            format!(
                "hits and misses are withheld: {} operations played a tape of {ops} more than once, which finds what \
                 it stored before; use --ops {} and --warmup 0s",
                warmed_up + played,
                (played + played / 4).next_multiple_of(100_000)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn withheld(
        depends: Dependence,
        fills: bool,
        warmed_up: u64,
        played: u64,
        misses: u64,
    ) -> bool {
        Repeats { op_count: 1000, depends, fills, warmed_up }.withheld(played, misses).is_some()
    }

    #[test]
    fn hits_are_told_if_the_tape_was_not_repeated_or_that_changes_nothing() {
        use Dependence::{Covered, Never, Open};
        assert!(!withheld(Open, true, 0, 1000, 700));
        assert!(withheld(Open, true, 0, 1001, 700));
        assert!(withheld(Open, true, 1, 10, 7));
        assert!(withheld(Open, true, 0, 5000, 0), "a fetch that always hits has stored it before");
        assert!(!withheld(Open, false, 500, 5000, 0), "everything is there");
        assert!(withheld(Open, false, 500, 5000, 1));
        assert!(!withheld(Covered, true, 0, 5000, 7));
        assert!(withheld(Covered, true, 500, 5000, 7), "a part of the tape was warm");
        assert!(!withheld(Covered, true, 1000, 5000, 7));
        assert!(!withheld(Never, false, 500, 5000, 7));
    }
}
