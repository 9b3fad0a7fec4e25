//! The trace parsers: a trace is refused with the number of the wrong line, or has a tape.

use std::io::{Cursor, Write};

use cachemark_tape::{Recording, ReplaySchedule, Schedule, Tape, Think};
use cachemark_trace::{Columns, Format, Gets, ImportOptions, import, import_file};

const FORMATS: [Format; 4] = [Format::Twitter, Format::Kvcache, Format::Memcached, Format::Csv];
/// A line may stand for a million operations.
const OPS_MAX: u64 = 2000;

pub const CLOSED: ReplaySchedule =
    ReplaySchedule::Schedule(Schedule::Closed { ops: u64::MAX, think: Think::None });

const COLUMNS: [&str; 4] =
    ["time:ms,op,key,size", "time key size", "key;-;ttl;op;count", "time:100ns,-,op,key_size,key"];

/// Each format, the detected one, and files whose columns are named; gets as they are and with fills.
fn all_options() -> impl Iterator<Item = ImportOptions> {
    let formats = FORMATS.map(Some).into_iter().chain([None]).map(|format| (format, None));
    let named = COLUMNS.map(|text| (None, Some(text.parse::<Columns>().expect("columns"))));
    formats
        .chain(named)
        .zip([Gets::AsLogged, Gets::CacheAside].into_iter().cycle())
        .map(|((format, columns), gets)| ImportOptions { format, columns, gets, max_ops: OPS_MAX })
}

/// Parse lines in each format, and in the detected one.
pub fn refused_or_playable(bytes: &[u8]) {
    for options in all_options() {
        match import(&mut Cursor::new(bytes), &options) {
            Err(refused) => sound(&refused),
            Ok(imported) => {
                assert!((0.0..=1.0).contains(&imported.left_out_share()));
                playable(&imported.recording);
            }
        }
    }
}

/// Names of columns are refused with a reason, or name a key.
pub fn columns_or_a_reason(text: &str) {
    if let Err(refused) = text.parse::<Columns>() {
        assert!(refused.contains("name each column") && !refused.contains('\n'), "{refused}");
    }
}

/// The same from a file, which may be compressed.
pub fn decompressed_or_refused(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("a file that can be written");
    let options = ImportOptions { max_ops: OPS_MAX, ..ImportOptions::default() };
    match import_file(file.path(), &options) {
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
