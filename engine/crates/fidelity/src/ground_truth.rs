//! The truth about each request: recorded by the simulated network, exactly, without
//! histograms.

use hdrhistogram::Histogram;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestOutcome {
    Answered,
    Wrong,
    /// The reply named another key, which ends its connection.
    OtherKey,
    TimedOut,
    /// Its connection was closed because an older request timed out.
    CutOff,
    /// Its connection was closed because another request failed in another way.
    Lost,
}

impl RequestOutcome {
    /// Whether its time, or the lower bound of it, must be recorded.
    fn is_timed(self) -> bool {
        matches!(self, Self::Answered | Self::TimedOut | Self::CutOff)
    }
}

#[derive(Clone, Copy, Debug)]
struct RequestRecord {
    due_ns: Option<u64>,
    sent_ns: u64,
    end: Option<(RequestOutcome, u64)>,
}

impl RequestRecord {
    /// When its right answer came.
    fn answered_ns(&self) -> Option<u64> {
        let (_, at_ns) = self.end.filter(|(end, _)| *end == RequestOutcome::Answered)?;
        Some(at_ns)
    }

    fn intended_ns(&self) -> u64 {
        self.due_ns.unwrap_or(self.sent_ns)
    }
}

/// Every request of a window.
#[derive(Debug)]
pub struct GroundTruth {
    timeout_ns: u64,
    /// When the window started.
    began_ns: u64,
    requests: Vec<RequestRecord>,
}

impl GroundTruth {
    pub fn new(timeout_ns: u64) -> GroundTruth {
        GroundTruth { timeout_ns, began_ns: 0, requests: Vec::new() }
    }

    /// Add the requests of another lane. Its window started at the same time.
    pub fn add(&mut self, lane: GroundTruth) {
        self.began_ns = lane.began_ns;
        self.requests.extend(lane.requests);
    }

    /// A window starts: forget all earlier requests.
    pub fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.requests.clear();
    }

    /// A request was sent. Returns its number.
    pub fn request_sent(&mut self, due_ns: Option<u64>, sent_ns: u64) -> usize {
        self.requests.push(RequestRecord { due_ns, sent_ns, end: None });
        self.requests.len() - 1
    }

    pub fn request_ended(&mut self, request: usize, end: RequestOutcome, at_ns: u64) {
        self.requests[request].end = Some((end, at_ns));
    }

    /// The client closed the connection on which these requests were in flight.
    pub fn connection_closed(&mut self, requests: impl Iterator<Item = usize>, at_ns: u64) {
        let requests: Vec<_> = requests.collect();
        let is_late = |request: &RequestRecord| at_ns - request.sent_ns >= self.timeout_ns;
        let late: Vec<_> = requests.iter().map(|at| is_late(&self.requests[*at])).collect();
        let timed_out = late.contains(&true);
        for (request, late) in requests.into_iter().zip(late) {
            let end = match (late, timed_out) {
                (true, _) => RequestOutcome::TimedOut,
                (false, true) => RequestOutcome::CutOff,
                (false, false) => RequestOutcome::Lost,
            };
            self.request_ended(request, end, at_ns);
        }
    }

    pub fn requests(&self) -> u64 {
        self.requests.len() as u64
    }

    pub fn count(&self, which: RequestOutcome) -> u64 {
        self.requests
            .iter()
            .filter(|request| request.end.is_some_and(|(end, _)| end == which))
            .count() as u64
    }

    /// The response times of all requests that have one, sorted.
    pub fn responses_ns(&self) -> Vec<u64> {
        self.times(RequestRecord::intended_ns)
    }

    /// The same for each section of the window. Times that ended after the window belong to the last
    /// section.
    pub fn responses_by(&self, part_ns: u64, parts: usize) -> Vec<Vec<u64>> {
        let mut found = vec![Vec::new(); parts];
        for request in &self.requests {
            let Some((_, at_ns)) = request.end.filter(|(end, _)| end.is_timed()) else { continue };
            let part = ((at_ns - self.began_ns) / part_ns) as usize;
            found[part.min(parts - 1)].push(at_ns - request.intended_ns());
        }
        found.into_iter().map(sorted).collect()
    }

    /// The times of whole groups, sorted: of `length` requests that were sent one after the other, and all
    /// answered. All requests must be of one lane.
    pub fn groups_ns(&self, length: usize) -> Vec<u64> {
        let whole = self.requests.chunks_exact(length).filter_map(|group| {
            let ends: Option<Vec<u64>> = group.iter().map(RequestRecord::answered_ns).collect();
            Some(ends?.into_iter().max()? - group.iter().map(|request| request.sent_ns).min()?)
        });
        sorted(whole.collect())
    }

    /// The service times, sorted.
    pub fn services_ns(&self) -> Vec<u64> {
        self.times(|request| request.sent_ns)
    }

    /// The send lags of all requests of an open loop, sorted.
    pub fn lags_ns(&self) -> Vec<u64> {
        let open =
            self.requests.iter().filter_map(|request| Some(request.sent_ns - request.due_ns?));
        sorted(open.collect())
    }

    fn times(&self, from_ns: impl Fn(&RequestRecord) -> u64) -> Vec<u64> {
        let timed = self.requests.iter().filter_map(|request| {
            let (_, at_ns) = request.end.filter(|(end, _)| end.is_timed())?;
            Some(at_ns - from_ns(request))
        });
        sorted(timed.collect())
    }
}

fn sorted(mut times_ns: Vec<u64>) -> Vec<u64> {
    times_ns.sort_unstable();
    times_ns
}

/// How many values of a histogram are in another bucket than the exact times.
pub fn in_wrong_bucket(histogram: &Histogram<u64>, exact_ns: &[u64]) -> u64 {
    let mut in_wrong_bucket = histogram.len().abs_diff(exact_ns.len() as u64);
    let mut recorded = 0;
    for bucket in histogram.iter_recorded() {
        recorded += bucket.count_at_value();
        let highest = histogram.highest_equivalent(bucket.value_iterated_to());
        let exact = exact_ns.partition_point(|ns| (*ns).max(1) <= highest) as u64;
        in_wrong_bucket = in_wrong_bucket.max(recorded.abs_diff(exact));
    }
    in_wrong_bucket
}
