//! How long a thread sleeps before an operation is due. It spins for the rest.

use crate::io_traits::WaitLimit;

/// How long a thread spins before an operation is due: timers wake it 30 to 90 µs late.
const SPIN_NS: u64 = 150_000;

/// epoll rounds the timeout up to whole ms. If an operation is due, round down instead and spin.
pub fn whole_ms(limit: WaitLimit, sleep_ns: u64) -> u64 {
    if limit.due_in_ns.is_some() { sleep_ns / 1_000_000 * 1_000_000 } else { sleep_ns }
}

/// How long to sleep within a limit. The caller spins for the rest.
pub fn sleep_ns(limit: WaitLimit) -> u64 {
    let until_due = limit.due_in_ns.map(|due| due.saturating_sub(SPIN_NS));
    until_due.into_iter().fold(limit.max_ns, u64::min)
}

#[cfg(test)]
mod tests {
    use super::{sleep_ns, whole_ms};
    use crate::io_traits::WaitLimit;

    #[test]
    fn epoll_never_oversleeps() {
        let max_ns = 50_000_000;
        // (due, sleep): whole ms that end at least `SPIN_NS` before the operation is due.
        for (due_ns, slept_ns) in
            [(0, 0), (999_999, 0), (1_100_000, 0), (1_900_000, 1_000_000), (90_000_000, max_ns)]
        {
            let limit = WaitLimit { due_in_ns: Some(due_ns), max_ns };
            assert_eq!(whole_ms(limit, sleep_ns(limit)), slept_ns, "due in {due_ns} ns");
        }
    }

    #[test]
    fn epoll_sleeps_to_the_limit_if_nothing_is_due() {
        let limit = WaitLimit { due_in_ns: None, max_ns: 1_900_000 };
        assert_eq!(whole_ms(limit, sleep_ns(limit)), 1_900_000);
    }
}
