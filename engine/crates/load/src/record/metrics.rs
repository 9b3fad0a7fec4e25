//! The metrics of one player: counts and histograms by kind of operation.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::{Tape, Verb};
use hdrhistogram::Histogram;

use super::groups::timed_length;
use super::histogram::{HIGHEST_NS, histogram, merge};
use super::kind::{KindMetrics, record};
use super::section_buckets::SectionBuckets;
use super::timeline::Timeline;
use super::window::Window;
use crate::operation::{Failure, OperationCounts, Timestamps};

/// Everything that one player recorded.
#[derive(Clone, Debug)]
pub struct Metrics {
    kinds: [Option<Box<KindMetrics>>; Metrics::KINDS],
    /// Operations have intended starts, so a response time may be longer than the service time.
    is_timed: bool,
    /// Open loop: actual send − intended start. `generator_lag` is the player's own part of it, without
    /// the wait for a free connection.
    pub send_lag: Histogram<u64>,
    pub generator_lag: Histogram<u64>,
    pub max_in_flight: u64,
    pub queued: u64,
    pub unsent: u64,
    /// Lost connections that were opened again; connections that were closed after a number of operations and
    /// opened again; attempts to open one that failed.
    pub reconnects: u64,
    pub renewed: u64,
    pub failed_connects: u64,
    pub barriers: u64,
    /// Writes that found the socket's send buffer full.
    pub blocked: u64,
    /// Times above the highest value of a histogram. They are recorded as that value.
    pub overflow: u64,
    /// The number of operations in a group, and the times of groups whose operations were all ok. `None` if
    /// groups are not timed.
    pub group_length: Option<u64>,
    pub groups: Histogram<u64>,
    /// The successful operations of all kinds, over time.
    pub timeline: Timeline,
    /// If the window has sections: a kind's `responses` then cover the current section only.
    pub(crate) section_buckets: Option<Box<SectionBuckets>>,
    /// When the current slice of the timeline or the current section ends, whichever is first.
    pub(crate) next_boundary_ns: u64,
}

impl Metrics {
    // Verb numbers have gaps. The index of a kind is twice the verb, plus 1 without a reply.
    const KINDS: usize = 2 * (Verb::Fetch as usize + 1);

    /// Empty metrics without storage for any kind, to add others to.
    pub fn empty(start_ns: u64) -> Metrics {
        Metrics {
            kinds: [const { None }; Metrics::KINDS],
            is_timed: false,
            send_lag: histogram(),
            generator_lag: histogram(),
            group_length: None,
            groups: histogram(),
            max_in_flight: 0,
            queued: 0,
            unsent: 0,
            reconnects: 0,
            renewed: 0,
            failed_connects: 0,
            barriers: 0,
            blocked: 0,
            overflow: 0,
            timeline: Timeline::new(start_ns),
            section_buckets: None,
            next_boundary_ns: start_ns,
        }
    }

    /// Metrics with storage for each kind on the tape, so that recording never allocates. The window
    /// starts at `start_ns`.
    pub fn new(tape: &Tape, start_ns: u64) -> Metrics {
        let mut metrics = Metrics::empty(start_ns);
        metrics.group_length = timed_length(tape);
        metrics.is_timed = tape.is_timed();
        metrics.kind_mut(Verb::Set, false);
        for j in 0..tape.op_count() {
            let op = tape.op(j);
            metrics.kind_mut(op.verb, op.noreply);
        }
        metrics
    }

    /// Metrics of one player's window, with sections if the window has them.
    pub(crate) fn of_window(tape: &Tape, window: &Window) -> Metrics {
        let mut metrics = Metrics::new(tape, window.start_ns);
        if let Some(length_ns) = window.section_ns {
            let kinds = (0..Metrics::KINDS).filter(|index| metrics.kinds[*index].is_some());
            let section_buckets =
                SectionBuckets::new(window.start_ns, length_ns, &kinds.collect::<Vec<_>>());
            metrics.section_buckets = Some(Box::new(section_buckets));
        }
        metrics
    }

    /// The kinds that were attempted, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &KindMetrics)> {
        let named = Verb::ALL.into_iter().flat_map(|verb| [(verb, false), (verb, true)]);
        named
            .filter_map(|(verb, noreply)| {
                let kind = self.kinds[index(verb, noreply)].as_deref()?;
                Some((verb.kind(noreply), kind))
            })
            .filter(|(_, kind)| kind.attempts > 0)
    }

    pub fn ok(&self) -> u64 {
        self.kinds().map(|(_, kind)| kind.ok).sum()
    }

    pub fn failed(&self) -> u64 {
        self.kinds().map(|(_, kind)| kind.failed()).sum()
    }

    /// How many operations have ended: ok, and failed.
    pub(crate) fn ended(&self) -> (u64, u64) {
        let kinds = self.kinds.iter().flatten();
        kinds.fold((0, 0), |(ok, failed), kind| (ok + kind.ok, failed + kind.failed()))
    }

    /// Slices: attempts are recorded when operations are sent, before it is known whether they count. Now that
    /// all have ended, each belongs to the part that has its end.
    pub(crate) fn move_attempts(&mut self, lead_in: &mut Metrics) {
        for (counted, not_counted) in self.kinds.iter_mut().zip(&mut lead_in.kinds) {
            if let (Some(counted), Some(not_counted)) = (counted, not_counted) {
                let attempts = counted.attempts + not_counted.attempts;
                not_counted.attempts = not_counted.ok + not_counted.failed();
                counted.attempts = attempts - not_counted.attempts;
            }
        }
    }

    /// Reset everything to zero and keep the storage.
    pub(crate) fn clear(&mut self) {
        self.kinds.iter_mut().flatten().filter(|kind| kind.is_used()).for_each(|kind| kind.clear());
        let all = [&mut self.send_lag, &mut self.generator_lag, &mut self.groups];
        all.into_iter().filter(|each| !each.is_empty()).for_each(|each| each.reset());
        self.overflow = 0;
        self.max_in_flight = 0;
        self.queued = 0;
        self.unsent = 0;
        self.reconnects = 0;
        self.renewed = 0;
        self.failed_connects = 0;
        self.barriers = 0;
        self.blocked = 0;
    }

    /// Add the metrics of another player.
    pub fn add(&mut self, other: &Metrics) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            if let Some(theirs) = theirs.as_ref().filter(|kind| kind.is_used()) {
                sum_of(mine).add(theirs);
            }
        }
        merge(&mut self.send_lag, &other.send_lag);
        merge(&mut self.generator_lag, &other.generator_lag);
        self.group_length = self.group_length.or(other.group_length);
        merge(&mut self.groups, &other.groups);
        self.overflow += other.overflow;
        self.timeline.add(&other.timeline);
        for (index, part) in
            other.section_buckets.iter().flat_map(|section_buckets| section_buckets.past())
        {
            sum_of(&mut self.kinds[*index]).add_responses(part, !other.is_timed);
        }
        self.max_in_flight += other.max_in_flight;
        self.queued += other.queued;
        self.unsent += other.unsent;
        self.reconnects += other.reconnects;
        self.renewed += other.renewed;
        self.failed_connects += other.failed_connects;
        self.barriers += other.barriers;
        self.blocked += other.blocked;
    }

    #[inline]
    pub(crate) fn attempted(&mut self, verb: Verb, noreply: bool) {
        self.kind_mut(verb, noreply).attempts += 1;
    }

    /// An operation succeeded. Inlined by order: most counts are known where it is called.
    #[inline(always)]
    pub(crate) fn completed(&mut self, at: &Timestamps, counts: &OperationCounts) {
        if at.now_ns >= self.next_boundary_ns {
            self.pass_boundary(at.now_ns);
        }
        let kind = self.kind_mut(at.verb, at.noreply);
        kind.ok += 1;
        kind.hits += u64::from(counts.hits);
        kind.misses += u64::from(counts.misses);
        kind.not_stored += u64::from(counts.not_stored);
        kind.keys += u64::from(counts.keys);
        kind.value_bytes += counts.value_bytes;
        kind.key_bytes += counts.key_bytes;
        kind.busy_ns += at.now_ns.saturating_sub(at.sent_ns);
        self.overflow += u64::from(kind.record_times(at.due_ns, at.sent_ns, at.now_ns));
        self.timeline.record_completion(at.now_ns.saturating_sub(at.due_ns));
    }

    /// A slice of the timeline or a section of the window has ended.
    #[cold]
    fn pass_boundary(&mut self, now_ns: u64) {
        self.pass_section_ends(now_ns);
        let slice_end_ns = self.timeline.advance_to(now_ns);
        self.next_boundary_ns = self
            .section_buckets
            .as_ref()
            .map_or(slice_end_ns, |section_buckets| section_buckets.end_ns.min(slice_end_ns));
    }

    /// Enter the section that contains `now_ns`.
    fn pass_section_ends(&mut self, now_ns: u64) {
        if self
            .section_buckets
            .as_ref()
            .is_none_or(|section_buckets| now_ns < section_buckets.end_ns)
        {
            return;
        }
        let ok = self.ok();
        let Some(section_buckets) = &mut self.section_buckets else { return };
        while now_ns >= section_buckets.end_ns {
            for (index, section_times) in section_buckets.next(ok) {
                if let Some(kind) = &mut self.kinds[*index] {
                    std::mem::swap(&mut kind.responses, section_times);
                }
            }
        }
    }

    /// An operation returned a wrong value. It is not counted as an operation and has no time.
    pub(crate) fn wrong_value(&mut self, verb: Verb, noreply: bool) {
        self.kind_mut(verb, noreply).wrong_values += 1;
    }

    /// An operation failed. The wait of a timeout, or of an operation that was cut off by one, is
    /// recorded as well: the operation took at least that long, and leaving it out would make the tail
    /// look too good.
    pub(crate) fn fail(&mut self, at: &Timestamps, failure: Failure, cut_off: bool) {
        self.pass_section_ends(at.now_ns);
        let kind = self.kind_mut(at.verb, at.noreply);
        kind.errors[failure as usize] += 1;
        let dropped = match cut_off {
            true => injected(Bug::DroppedCutOff),
            false => injected(Bug::DroppedTimeouts),
        };
        if (failure == Failure::Timeout || cut_off) && !dropped {
            self.overflow += u64::from(kind.record_times(at.due_ns, at.sent_ns, at.now_ns));
        }
    }

    /// An operation without a reply was counted as successful when it was written, but has failed. The
    /// recorded time of its write remains.
    pub(crate) fn retract_noreply(&mut self, verb: Verb, failure: Failure) {
        let sent = [index(verb, true), index(Verb::Mset, true)];
        let found = sent.into_iter().find(|index| {
            let kind = self.kinds[*index].as_deref();
            kind.is_some_and(|kind| kind.ok > 0) && (verb == Verb::Set || *index == sent[0])
        });
        if let Some(kind) = found.and_then(|index| self.kinds[index].as_deref_mut()) {
            kind.ok -= 1;
            kind.errors[failure as usize] += 1;
            kind.keys = kind.keys.saturating_sub(1);
        }
    }

    /// An operation was due and was never sent.
    pub(crate) fn never_sent(&mut self, verb: Verb, noreply: bool, waited_ns: u64) {
        self.unsent += 1;
        self.overflow += u64::from(waited_ns > HIGHEST_NS);
        record(&mut self.kind_mut(verb, noreply).responses, waited_ns);
    }

    fn kind_mut(&mut self, verb: Verb, noreply: bool) -> &mut KindMetrics {
        let is_timed = self.is_timed;
        self.kinds[index(verb, noreply)].get_or_insert_with(|| Box::new(KindMetrics::new(is_timed)))
    }
}

/// Metrics of a kind to add others to. Nothing is recorded in them.
fn sum_of(kind: &mut Option<Box<KindMetrics>>) -> &mut KindMetrics {
    kind.get_or_insert_with(|| Box::new(KindMetrics::new(false)))
}

fn index(verb: Verb, noreply: bool) -> usize {
    2 * verb as usize + usize::from(noreply)
}
