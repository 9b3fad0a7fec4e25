//! A window in sections of equal length, with the response times of each. How much the sections differ
//! shows how reliable a percentile of the whole window is. Single requests cannot show this, because
//! neighbouring requests are correlated.

use hdrhistogram::Histogram;

use super::histogram::{histogram, merge};
use super::metrics::Metrics;
use super::section_buckets::{SECTION_COUNT, SectionBuckets};

/// The operations of all kinds that ended in one section.
#[derive(Clone, Debug)]
pub struct Section {
    pub ok: u64,
    pub response: Histogram<u64>,
}

/// The sections of a window, over all players.
#[derive(Clone, Debug)]
pub struct Sections {
    pub length_ns: u64,
    pub each: Vec<Section>,
}

impl Sections {
    /// The sum over several players of one window; `None` if one of them has no sections.
    pub fn of<'a>(all_metrics: impl Iterator<Item = &'a Metrics>) -> Option<Sections> {
        let mut sum: Option<Sections> = None;
        for metrics in all_metrics {
            let section_buckets = metrics.section_buckets.as_deref()?;
            let sections = sum.get_or_insert_with(|| Sections {
                length_ns: section_buckets.length_ns,
                each: vec![Section { ok: 0, response: histogram() }; SECTION_COUNT],
            });
            sections.add(metrics, section_buckets);
        }
        sum
    }

    fn add(&mut self, metrics: &Metrics, section_buckets: &SectionBuckets) {
        let mut before = 0;
        for (number, section) in self.each.iter_mut().enumerate().take(section_buckets.current + 1)
        {
            let is_current = number == section_buckets.current;
            let ok_so_far = if is_current { metrics.ok() } else { section_buckets.ok[number] };
            section.ok += ok_so_far.saturating_sub(before);
            before = ok_so_far;
            if is_current {
                let kinds = metrics.kinds().map(|(_, kind)| kind.responses.histogram());
                kinds.for_each(|part| merge(&mut section.response, &part));
            } else {
                let parts = section_buckets.section_times[number].iter();
                parts.for_each(|(_, part)| merge(&mut section.response, &part.histogram()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cachemark_tape::{Schedule, Tape, Verb, Workload, generate};

    use super::*;
    use crate::operation::{Failure, OperationCounts, Timestamps};
    use crate::record::window::Window;

    const MS: u64 = 1_000_000;

    fn tape() -> Tape {
        let bytes = generate(&Workload::default(), &Schedule::closed(10), 1).expect("a tape");
        Tape::from_bytes(bytes).expect("our own tape")
    }

    /// Metrics of a window of ten sections of 1 ms that starts at 7 ns.
    fn metrics() -> Metrics {
        let window =
            Window { start_ns: 7, end_ns: 7 + 10 * MS, timeout_ns: 1, section_ns: Some(MS) };
        Metrics::of_window(&tape(), &window)
    }

    fn get(due_ns: u64, now_ns: u64) -> Timestamps {
        Timestamps { verb: Verb::Get, noreply: false, due_ns, sent_ns: due_ns, now_ns }
    }

    fn play(metrics: &mut Metrics, at: Timestamps) {
        metrics.attempted(Verb::Get, false);
        metrics.completed(&at, &OperationCounts::default());
    }

    fn counts(sections: &Sections) -> Vec<(u64, u64)> {
        sections.each.iter().map(|section| (section.ok, section.response.len())).collect()
    }

    #[test]
    fn an_operation_belongs_to_the_section_in_which_it_ends() {
        let mut metrics = metrics();
        for part in 0..10 {
            play(&mut metrics, get(7, 7 + part * MS)); // its first instant
            play(&mut metrics, get(7, 6 + (part + 1) * MS)); // and its last
        }
        let sections = Sections::of([&metrics].into_iter()).expect("parts");
        assert_eq!(counts(&sections), [(2, 2); 10]);
        assert_eq!(
            sections.each[3].response.max(),
            sections.each[3].response.highest_equivalent(4 * MS - 1)
        );
    }

    #[test]
    fn sections_add_up_to_the_whole_window() {
        let mut one = metrics();
        let mut other = metrics();
        (0..100).for_each(|i| play(&mut one, get(7, 7 + i * MS / 10)));
        // A player that was idle for most of the window, and ended after it.
        play(&mut other, get(7, 8));
        play(&mut other, get(7, 7 + 12 * MS));
        let sections = Sections::of([&one, &other].into_iter()).expect("parts");
        assert_eq!(counts(&sections)[0], (11, 11));
        assert_eq!(counts(&sections)[5], (10, 10));
        assert_eq!(counts(&sections)[9], (11, 11));
        let mut whole = Metrics::new(&tape(), 0);
        [&one, &other].into_iter().for_each(|part| whole.add(part));
        let (_, kind) = whole.kinds().next().expect("gets");
        let mut sum = histogram();
        sections.each.iter().for_each(|section| merge(&mut sum, &section.response));
        assert!(kind.response == sum);
        assert_eq!(sum.len(), 102);
    }

    #[test]
    fn a_timeout_has_a_time_but_is_not_ok() {
        let mut metrics = metrics();
        metrics.attempted(Verb::Get, false);
        metrics.fail(&get(7, 7 + 4 * MS), Failure::Timeout, false);
        let sections = Sections::of([&metrics].into_iter()).expect("parts");
        assert_eq!(counts(&sections)[4], (0, 1));
    }

    #[test]
    fn without_the_sections_of_one_player_there_are_none() {
        let (mut one, other) = (metrics(), metrics());
        one.section_buckets = None;
        assert!(Sections::of([&one, &other].into_iter()).is_none());
        assert!(Sections::of([].into_iter()).is_none());
    }
}
