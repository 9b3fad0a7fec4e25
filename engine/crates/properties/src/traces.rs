//! The trace parsers: a trace is refused with the number of the wrong line, or has a tape.

use std::io::{Cursor, Write};

use cachemark_tape::{Recording, ReplaySchedule, Schedule, Tape, Think};
use cachemark_trace::{Format, import, import_file};

const FORMATS: [Format; 4] = [Format::Twitter, Format::Kvcache, Format::Memcached, Format::Csv];
/// A line may stand for a million operations.
const OPS_MAX: u64 = 2000;

pub const CLOSED: ReplaySchedule =
    ReplaySchedule::Schedule(Schedule::Closed { ops: u64::MAX, think: Think::None });

/// Parse lines in each format, and in the detected one.
pub fn refused_or_playable(bytes: &[u8]) {
    for format in FORMATS.map(Some).into_iter().chain([None]) {
        match import(&mut Cursor::new(bytes), format, OPS_MAX) {
            Err(refused) => sound(&refused),
            Ok(imported) => playable(&imported.recording),
        }
    }
}

/// The same from a file, which may be compressed.
pub fn decompressed_or_refused(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("a file that can be written");
    match import_file(file.path(), None, OPS_MAX) {
        Err(refused) => {
            let place = format!("{}: ", file.path().display());
            let reason = refused.strip_prefix(&place).expect("the file is named");
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        }
        Ok(imported) => playable(&imported.recording),
    }
}

fn sound(refused: &str) {
    assert!(refused.starts_with("line ") || refused == "it is empty", "{refused}");
    assert!(!refused.contains('\n'), "one sentence: {refused:?}");
}

/// The trace has a tape, or there is a reason.
pub fn playable(recording: &Recording) {
    for replay in [CLOSED, ReplaySchedule::Recorded { speed: 3.0 }] {
        match recording.tape(replay, 0.5, 0.0, 1) {
            Ok(bytes) => assert!(Tape::from_bytes(bytes).is_ok(), "its own tape is refused"),
            Err(error) => assert!(!error.0.is_empty()),
        }
    }
}
