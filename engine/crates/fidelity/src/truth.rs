//! What really happened to each request, kept by the world itself and in no histogram.

use hdrhistogram::Histogram;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Answered,
    Wrong,
    TimedOut,
    /// Its connection was closed for another's sake.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    due_ns: Option<u64>,
    sent_ns: u64,
    end: Option<(End, u64)>,
}

impl Life {
    fn intended_ns(&self) -> u64 {
        self.due_ns.unwrap_or(self.sent_ns)
    }
}

/// Every request since the window began.
#[derive(Debug)]
pub struct Truth {
    timeout_ns: u64,
    /// When the window of each of these requests began.
    began_ns: u64,
    lives: Vec<Life>,
}

impl Truth {
    pub fn new(timeout_ns: u64) -> Truth {
        Truth { timeout_ns, began_ns: 0, lives: Vec::new() }
    }

    /// Take another lane's requests in, whose window began at the same instant.
    pub fn add(&mut self, lane: Truth) {
        self.began_ns = lane.began_ns;
        self.lives.extend(lane.lives);
    }

    /// Forget what was before: a window begins.
    pub fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.lives.clear();
    }

    /// A request was written; its number.
    pub fn came(&mut self, due_ns: Option<u64>, sent_ns: u64) -> usize {
        self.lives.push(Life { due_ns, sent_ns, end: None });
        self.lives.len() - 1
    }

    pub fn ended(&mut self, request: usize, end: End, at_ns: u64) {
        self.lives[request].end = Some((end, at_ns));
    }

    /// The client closed the connection on which these were outstanding.
    pub fn closed(&mut self, requests: impl Iterator<Item = usize>, at_ns: u64) {
        for request in requests {
            let late = at_ns - self.lives[request].sent_ns >= self.timeout_ns;
            self.ended(request, if late { End::TimedOut } else { End::Lost }, at_ns);
        }
    }

    pub fn requests(&self) -> u64 {
        self.lives.len() as u64
    }

    pub fn count(&self, which: End) -> u64 {
        self.lives.iter().filter(|life| life.end.is_some_and(|(end, _)| end == which)).count()
            as u64
    }

    /// From intended start to end, of those whose time counts, in order of size.
    pub fn responses_ns(&self) -> Vec<u64> {
        self.times(Life::intended_ns)
    }

    /// The same by the part of the window in which each ended; the last has what ended beyond it.
    pub fn responses_by(&self, part_ns: u64, parts: usize) -> Vec<Vec<u64>> {
        let mut found = vec![Vec::new(); parts];
        for life in &self.lives {
            let Some((End::Answered | End::TimedOut, at_ns)) = life.end else { continue };
            let part = ((at_ns - self.began_ns) / part_ns) as usize;
            found[part.min(parts - 1)].push(at_ns - life.intended_ns());
        }
        found.into_iter().map(sorted).collect()
    }

    /// From send to end.
    pub fn services_ns(&self) -> Vec<u64> {
        self.times(|life| life.sent_ns)
    }

    /// From intended start to send, of all in an open loop.
    pub fn lags_ns(&self) -> Vec<u64> {
        let open = self.lives.iter().filter_map(|life| Some(life.sent_ns - life.due_ns?));
        sorted(open.collect())
    }

    fn times(&self, from_ns: impl Fn(&Life) -> u64) -> Vec<u64> {
        let timed = self.lives.iter().filter_map(|life| match life.end? {
            (End::Answered | End::TimedOut, at_ns) => Some(at_ns - from_ns(life)),
            _ => None,
        });
        sorted(timed.collect())
    }
}

fn sorted(mut times_ns: Vec<u64>) -> Vec<u64> {
    times_ns.sort_unstable();
    times_ns
}

/// How many values a histogram has in another bucket than the exact times are in.
pub fn misplaced(histogram: &Histogram<u64>, exact_ns: &[u64]) -> u64 {
    let mut misplaced = histogram.len().abs_diff(exact_ns.len() as u64);
    let mut recorded = 0;
    for bucket in histogram.iter_recorded() {
        recorded += bucket.count_at_value();
        let highest = histogram.highest_equivalent(bucket.value_iterated_to());
        let exact = exact_ns.partition_point(|ns| (*ns).max(1) <= highest) as u64;
        misplaced = misplaced.max(recorded.abs_diff(exact));
    }
    misplaced
}
