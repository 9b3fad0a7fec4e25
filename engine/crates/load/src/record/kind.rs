//! The metrics of one kind of operation.

use cachemark_injected_bugs::{Bug, injected};
use hdrhistogram::Histogram;

use super::buckets::LatencyBuckets;
use super::histogram::{HIGHEST_NS, histogram, merge};

/// Counts and histograms of one kind of operation.
#[derive(Clone, Debug)]
pub struct KindMetrics {
    pub attempts: u64,
    pub ok: u64,
    pub hits: u64,
    pub misses: u64,
    pub not_stored: u64,
    pub wrong_values: u64,
    pub errors: [u64; 5],
    pub keys: u64,
    pub value_bytes: u64,
    pub key_bytes: u64,
    pub busy_ns: u64,
    /// The sum of the metrics that were added.
    pub response: Histogram<u64>,
    pub service: Histogram<u64>,
    /// The operations that were recorded here, until this is added to other metrics.
    pub(crate) responses: LatencyBuckets,
    /// `None`: they are the response times, because every operation starts when it is sent.
    services: Option<LatencyBuckets>,
}

/// Record a time. A value outside the bounds is recorded as the nearest bound.
#[inline]
pub(crate) fn record(times: &mut LatencyBuckets, ns: u64) {
    let lowest_ns = if injected(Bug::TenMicrosecondFloor) { 10_000 } else { 1 };
    let ns = ns.clamp(lowest_ns, HIGHEST_NS);
    times.record(ns);
    if injected(Bug::CorrectedHistogram) {
        let missed = (1..).map(|n| ns.saturating_sub(n * 10_000_000));
        missed.take_while(|ns| *ns >= 10_000_000).for_each(|ns| times.record(ns));
    }
}

fn add_buckets(sum: &mut Histogram<u64>, times: &LatencyBuckets) {
    match injected(Bug::AveragedPercentiles) {
        true => merge(sum, &times.histogram()),
        false => times.add_to(sum),
    }
}

impl KindMetrics {
    /// Empty metrics. `is_timed`: operations have intended starts.
    pub(crate) fn new(is_timed: bool) -> KindMetrics {
        KindMetrics {
            attempts: 0,
            ok: 0,
            hits: 0,
            misses: 0,
            not_stored: 0,
            wrong_values: 0,
            errors: [0; 5],
            keys: 0,
            value_bytes: 0,
            key_bytes: 0,
            busy_ns: 0,
            response: histogram(),
            service: histogram(),
            responses: LatencyBuckets::new(),
            services: is_timed.then(LatencyBuckets::new),
        }
    }

    pub(crate) fn clear(&mut self) {
        let counts = [
            &mut self.attempts,
            &mut self.ok,
            &mut self.hits,
            &mut self.misses,
            &mut self.not_stored,
            &mut self.wrong_values,
            &mut self.keys,
            &mut self.value_bytes,
            &mut self.key_bytes,
            &mut self.busy_ns,
        ];
        counts.into_iter().for_each(|count| *count = 0);
        self.errors.fill(0);
        self.responses.clear();
        if let Some(services) = &mut self.services {
            services.clear();
        }
    }

    /// Whether anything was recorded.
    pub(crate) fn is_used(&self) -> bool {
        self.attempts + self.ok + self.failed() > 0
            || !self.response.is_empty()
            || !self.responses.is_empty()
    }

    pub fn failed(&self) -> u64 {
        self.errors.iter().sum::<u64>() + self.wrong_values
    }

    /// Record the response time and the service time. True if the response time was above the highest
    /// value of a histogram.
    #[inline]
    pub(crate) fn record_times(&mut self, due_ns: u64, sent_ns: u64, now_ns: u64) -> bool {
        let response_ns = now_ns.saturating_sub(due_ns);
        record(&mut self.responses, response_ns);
        match &mut self.services {
            Some(services) => record(services, now_ns.saturating_sub(sent_ns)),
            None => debug_assert_eq!(due_ns, sent_ns),
        }
        response_ns > HIGHEST_NS && !injected(Bug::SilentOverflow)
    }

    pub(crate) fn add(&mut self, other: &KindMetrics) {
        self.attempts += other.attempts;
        self.ok += other.ok;
        self.hits += other.hits;
        self.misses += other.misses;
        self.not_stored += other.not_stored;
        self.wrong_values += other.wrong_values;
        for (sum, part) in self.errors.iter_mut().zip(other.errors) {
            *sum += part;
        }
        self.keys += other.keys;
        self.value_bytes += other.value_bytes;
        self.key_bytes += other.key_bytes;
        self.busy_ns += other.busy_ns;
        merge(&mut self.response, &other.response);
        merge(&mut self.service, &other.service);
        self.add_responses(&other.responses, other.services.is_none());
        if let Some(services) = &other.services {
            add_buckets(&mut self.service, services);
        }
    }

    /// Add response times that were recorded elsewhere, which may be the service times, too.
    pub(crate) fn add_responses(&mut self, responses: &LatencyBuckets, are_services: bool) {
        add_buckets(&mut self.response, responses);
        if are_services {
            add_buckets(&mut self.service, responses);
        }
    }
}
