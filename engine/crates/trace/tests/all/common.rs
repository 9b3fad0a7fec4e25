//! Helpers of the tests of traces.

use std::io::Cursor;

use cachemark_tape::{Recording, ReplaySchedule, Tape, Verb};
use cachemark_trace::{Format, ImportOptions, ImportedTrace, import};

pub fn read(text: &str, format: Option<Format>) -> Result<ImportedTrace, String> {
    import(&mut Cursor::new(text.as_bytes()), &ImportOptions { format, ..Default::default() })
}

/// Read a file without a header.
pub fn read_columns(text: &str, columns: &str) -> Result<ImportedTrace, String> {
    let columns = Some(columns.parse().expect("columns"));
    import(&mut Cursor::new(text.as_bytes()), &ImportOptions { columns, ..Default::default() })
}

pub fn left_out(imported: &ImportedTrace, reason: &str) -> u64 {
    let of = |(name, count): (&String, &u64)| name.starts_with(reason).then_some(*count);
    imported.left_out.iter().filter_map(of).sum()
}

pub fn due_ns(imported: &ImportedTrace) -> Vec<u64> {
    imported.recording.times_ns.clone()
}

pub fn tape(recording: &Recording, replay: ReplaySchedule) -> Tape {
    let bytes = recording.tape(replay, 1.0, 0.0, 1).expect("a recording that can be played");
    Tape::from_bytes(bytes).expect("our own tape")
}

/// Verb, key, value size and expiry time of each operation.
pub fn operations(tape: &Tape) -> Vec<(Verb, String, u32, u32)> {
    let text = |k| String::from_utf8_lossy(tape.key(k)).into_owned();
    (0..tape.op_count())
        .map(|j| tape.op(j))
        .map(|op| (op.verb, text(op.key), op.length, op.exptime_s))
        .collect()
}

/// The verbs of a recording's operations.
pub fn verbs(imported: &ImportedTrace) -> Vec<Verb> {
    imported.recording.ops.iter().map(|op| op.verb).collect()
}

pub const TWITTER: &str = "\
0,q:q:1:8WTfjZU14ee,17,213,4,get,0
0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,get,0
1,has,a,comma,11,40,3,set,86400
1,has,a,comma,11,0,3,get,0
1,n:1,3,0,3,incr,0
2,q:q:1:8WTfjZU14ee,17,220,4,append,0
";
