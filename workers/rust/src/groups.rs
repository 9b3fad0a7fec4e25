//! The times of whole groups of the tape (docs/tape.md), whose operations a lane plays one after the other.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::histogram::{encode, histogram};
use crate::tape::Tape;

/// The groups of a lane.
pub struct Groups {
    length: usize,
    /// The next operation's place in its group.
    place: usize,
    began_ns: u64,
    /// All operations of the group so far were right and count.
    whole: bool,
    times: Histogram<u64>,
}

impl Groups {
    /// None if the tape's groups are not timed.
    pub fn of(tape: &Tape) -> Option<Groups> {
        let timed = tape.group > 1 && tape.times.is_none();
        timed.then(|| Groups {
            length: tape.group,
            place: 0,
            began_ns: 0,
            whole: false,
            times: histogram(),
        })
    }

    /// Note an operation: whether it was right and counts, its begin and its end.
    pub fn note(&mut self, ok: bool, began_ns: u64, now_ns: u64) {
        if self.place == 0 {
            (self.began_ns, self.whole) = (began_ns, true);
        }
        self.whole &= ok;
        self.place += 1;
        if self.place < self.length {
            return;
        }
        self.place = 0;
        if self.whole {
            self.times.saturating_record((now_ns - self.began_ns).max(1));
        }
    }

    /// A slice begins: a group that the last slice has cut does not count.
    pub fn cut(&mut self) {
        self.whole = false;
    }

    /// The groups of all lanes, for the message; null if they are not timed.
    pub fn message<'a>(lanes: impl Iterator<Item = &'a Option<Groups>>) -> Value {
        let mut sum: Option<(usize, Histogram<u64>)> = None;
        for groups in lanes.flatten() {
            let (_, times) = sum.get_or_insert_with(|| (groups.length, histogram()));
            times.add(&groups.times).expect("same bounds");
        }
        sum.map_or(
            Value::Null,
            |(length, times)| json!({"length": length, "ok": times.len(), "time": encode(&times)}),
        )
    }
}
