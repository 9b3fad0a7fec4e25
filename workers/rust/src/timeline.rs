//! The timeline of a window: the operations that ended in each of a thousand slices; a hundred are a section.

use serde_json::{Value, json};

pub const SECTIONS: usize = 10;
const SECTION_SLICES: usize = 100;
const SLICES: usize = SECTIONS * SECTION_SLICES;
/// Operations that end after a late open loop's window have slices too; the last has the rest.
const MOST_SLICES: usize = 4 * SLICES;

#[derive(Clone, Copy, Default)]
struct Slice {
    ok: u64,
    response_ns: u64,
}

/// All memory is allocated before the window; an operation costs a comparison and two additions.
pub struct Timeline {
    start_ns: u64,
    slice_ns: u64,
    /// The end of the current slice.
    pub end_ns: u64,
    at: usize,
    slices: Vec<Slice>,
}

fn section_of(slice: usize) -> usize {
    (slice / SECTION_SLICES).min(SECTIONS - 1)
}

impl Timeline {
    /// For a window of this length; a window that ends by a number of operations has a single slice, which
    /// is not reported.
    pub fn new(duration_ns: Option<u64>) -> Timeline {
        let slice_ns = duration_ns.unwrap_or(0) / SLICES as u64;
        Timeline {
            start_ns: 0,
            slice_ns,
            end_ns: u64::MAX,
            at: 0,
            slices: vec![Slice::default(); if slice_ns > 0 { MOST_SLICES } else { 1 }],
        }
    }

    /// Set the window's begin.
    pub fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.end_ns = if self.slice_ns > 0 { start_ns + self.slice_ns } else { u64::MAX };
    }

    /// Go on to the slice of an instant; returns its section.
    #[cold]
    pub fn advance(&mut self, now_ns: u64) -> usize {
        let last = self.slices.len() - 1;
        self.at = (((now_ns - self.start_ns) / self.slice_ns) as usize).min(last);
        let next_ns = self.start_ns + (self.at as u64 + 1) * self.slice_ns;
        self.end_ns = if self.at == last { u64::MAX } else { next_ns };
        section_of(self.at)
    }

    /// Note an operation that ended in the current slice.
    pub fn note(&mut self, response_ns: u64) {
        let slice = &mut self.slices[self.at];
        slice.ok += 1;
        slice.response_ns += response_ns;
    }

    /// The timelines of all lanes in the form of the message, and their sections with these histograms.
    pub fn messages<'a>(
        courses: impl Iterator<Item = &'a Timeline> + Clone,
        response: impl FnOnce() -> Vec<Option<String>>,
    ) -> (Option<Value>, Option<Value>) {
        let slice_ns = courses.clone().map(|timeline| timeline.slice_ns).max().unwrap_or(0);
        if slice_ns == 0 {
            return (None, None);
        }
        let count = courses.clone().map(|timeline| timeline.at + 1).max().unwrap_or(0);
        let (mut ok, mut response_ns) = (vec![0; count], vec![0; count]);
        let mut in_section = [0; SECTIONS];
        for (at, slice) in
            courses.flat_map(|timeline| timeline.slices[..=timeline.at].iter().enumerate())
        {
            ok[at] += slice.ok;
            response_ns[at] += slice.response_ns;
            in_section[section_of(at)] += slice.ok;
        }
        let length_ns = slice_ns * SECTION_SLICES as u64;
        let timeline = json!({"slice_ns": slice_ns, "ok": ok, "response_ns": response_ns});
        let sections = json!({"length_ns": length_ns, "ok": in_section, "response": response()});
        (Some(timeline), Some(sections))
    }
}
