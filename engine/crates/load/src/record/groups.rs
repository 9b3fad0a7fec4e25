//! The times of groups: records of the tape that stay together in one lane, such as one web request.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::Tape;

/// The number of operations in a group of a tape; `None` if groups are not timed. In an open loop, and with
/// think times, the schedule would set a group's time.
pub(crate) fn timed_length(tape: &Tape) -> Option<u64> {
    (!tape.is_timed() && tape.group() > 1).then(|| tape.group())
}

/// The groups of one player that are being played. Operations may end in any order.
pub(crate) struct Groups {
    length: u64,
    /// How many operations of the newest group were taken.
    taken: u64,
    newest: u32,
    playing: Vec<Group>,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Group {
    /// Operations that have not ended.
    left: u64,
    began_ns: u64,
    ended_ns: u64,
    /// All operations that ended were ok and counted.
    whole: bool,
}

impl Groups {
    /// Room for the groups of at most `outstanding` operations at a time.
    pub(crate) fn new(length: u64, outstanding: usize) -> Groups {
        // The newest group may have no operation outstanding.
        let most = outstanding as u32 + 1;
        let none = Group { left: 0, began_ns: 0, ended_ns: 0, whole: false };
        Groups {
            length,
            taken: length,
            newest: 0,
            playing: vec![none; most as usize],
            free: (0..most).collect(),
        }
    }

    /// The next operation is taken from the tape. Returns its group.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.taken == self.length {
            self.taken = 0;
            self.newest = self.free.pop()?;
            self.playing[self.newest as usize] =
                Group { left: self.length, began_ns: u64::MAX, ended_ns: 0, whole: true };
        }
        self.taken += 1;
        Some(self.newest)
    }

    /// An operation of a group has ended. Returns the group's time if it was the last one, and all
    /// were ok and counted.
    #[inline]
    pub(crate) fn ended(&mut self, group: u32, ok: bool, sent_ns: u64, now_ns: u64) -> Option<u64> {
        let playing = &mut self.playing[group as usize];
        playing.whole &= ok || injected(Bug::GroupDespiteFailure);
        if playing.left < self.length || !injected(Bug::GroupBeginsLate) {
            playing.began_ns = playing.began_ns.min(sent_ns);
        }
        if playing.left > 1 || !injected(Bug::GroupEndsEarly) {
            playing.ended_ns = playing.ended_ns.max(now_ns);
        }
        playing.left -= 1;
        if playing.left > 0 {
            return None;
        }
        self.free.push(group);
        playing.whole.then(|| playing.ended_ns - playing.began_ns)
    }

    /// A slice has ended. The group that it cuts is not counted.
    pub(crate) fn cut(&mut self) {
        if self.taken < self.length {
            self.playing[self.newest as usize].whole = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Take and end operations: of each whether it is ok, when it was sent and when it ended.
    fn play(groups: &mut Groups, operations: &[(bool, u64, u64)]) -> Vec<u64> {
        let taken: Vec<_> = operations.iter().map(|_| groups.take().expect("room")).collect();
        let ended = taken.iter().zip(operations);
        ended.filter_map(|(group, at)| groups.ended(*group, at.0, at.1, at.2)).collect()
    }

    #[test]
    fn a_group_lasts_from_first_send_to_last_end() {
        let mut groups = Groups::new(2, 4);
        assert_eq!(play(&mut groups, &[(true, 10, 40), (true, 11, 25)]), [30]);
        assert_eq!(play(&mut groups, &[(true, 50, 60), (true, 70, 95)]), [45]);
    }

    #[test]
    fn a_failed_operation_takes_its_group_with_it() {
        let mut groups = Groups::new(2, 4);
        let four = [(true, 1, 2), (false, 3, 4), (true, 5, 6), (true, 7, 9)];
        assert_eq!(play(&mut groups, &four), [4]);
    }

    #[test]
    fn a_group_that_a_slice_cuts_is_not_counted() {
        let mut groups = Groups::new(2, 1);
        assert_eq!(play(&mut groups, &[(true, 1, 2)]), []);
        groups.cut();
        assert_eq!(play(&mut groups, &[(true, 3, 4), (true, 5, 6), (true, 7, 8)]), [3]);
    }
}
