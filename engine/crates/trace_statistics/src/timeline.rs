//! The traffic over time, in windows whose width is doubled when there are too many of them.

use std::collections::BTreeMap;

use cachemark_trace::file::Record;
use serde::Serialize;

use crate::kind::Kind;
use crate::reads::Reads;

const FIRST_WIDTH_NS: u64 = 1_000_000;
const MOST_WINDOWS: usize = 60;

/// The requests of a window. The last window may end before its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeWindow {
    pub operations: BTreeMap<String, u64>,
    pub reads: Reads,
    /// Bytes of values that were read or written.
    pub value_bytes: u64,
    /// Keys that were not seen before.
    pub new_keys: f64,
    /// Items that were stored or read before and have not expired, at the end of the window, and their bytes.
    pub live_items: f64,
    pub live_bytes: f64,
}

impl TimeWindow {
    pub(crate) fn add(&mut self, record: &Record<'_>, kind: Kind, count: u64) {
        match self.operations.get_mut(record.operation) {
            Some(known) => *known += count,
            None => drop(self.operations.insert(record.operation.to_owned(), count)),
        }
        if kind == Kind::Read {
            self.reads.add(record.succeeded, count);
        }
        self.value_bytes += u64::from(record.length.unwrap_or(0)) * count;
    }

    fn join(&mut self, later: &TimeWindow) {
        for (name, count) in &later.operations {
            *self.operations.entry(name.clone()).or_default() += count;
        }
        self.reads.join(later.reads);
        self.value_bytes += later.value_bytes;
        self.new_keys += later.new_keys;
        if !later.operations.is_empty() {
            (self.live_items, self.live_bytes) = (later.live_items, later.live_bytes);
        }
    }
}

pub(crate) struct Timeline {
    pub width_ns: u64,
    pub windows: Vec<TimeWindow>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { width_ns: FIRST_WIDTH_NS, windows: Vec::new() }
    }
}

impl Timeline {
    pub fn window(&mut self, at_ns: u64) -> &mut TimeWindow {
        while at_ns / self.width_ns >= MOST_WINDOWS as u64 {
            self.widen();
        }
        let place = (at_ns / self.width_ns) as usize;
        while self.windows.len() <= place {
            // Nothing came: what lived, lives, as far as is known.
            let (live_items, live_bytes) =
                self.windows.last().map_or((0.0, 0.0), |last| (last.live_items, last.live_bytes));
            self.windows.push(TimeWindow { live_items, live_bytes, ..TimeWindow::default() });
        }
        &mut self.windows[place]
    }

    fn widen(&mut self) {
        self.width_ns *= 2;
        let narrow = std::mem::take(&mut self.windows);
        for pair in narrow.chunks(2) {
            let mut wide = pair[0].clone();
            pair[1..].iter().for_each(|later| wide.join(later));
            self.windows.push(wide);
        }
    }
}
