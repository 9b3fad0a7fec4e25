//! The trace parsers: a trace is refused with the number of the wrong line, or has a tape.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use cachemark_tape::{Recording, ReplaySchedule, Schedule, Tape, Think};
use cachemark_trace::file::{Origin, Summary, TraceReader, TraceWriter};
use cachemark_trace::{
    Columns, Conversion, Format, Gets, ImportOptions, Output, Snapshot, convert_requests, import,
    import_file,
};

const FORMATS: [Format; 5] =
    [Format::Twitter, Format::Kvcache, Format::Memcached, Format::Csv, Format::OracleGeneral];
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

/// A file of cachemark's own format with one block: its first two bytes say how many records, the third whether they
/// have times, the rest is its content. All checksums are right, so that the parser behind them sees the bytes.
pub fn trace_file(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, content) = bytes.split_at_checked(3)?;
    let records = u64::from(u16::from_le_bytes([head[0], head[1]]));
    let summary = serde_json::json!({ "records": records }).to_string();
    let mut file = b"cmtrace\x01".to_vec();
    let blocks = [
        (1, 0, br#"{"source":"","keys":"plain"}"#.as_slice()),
        (2, records, content),
        (3, 0, summary.as_bytes()),
    ];
    for (kind, records, content) in blocks {
        let mut start = vec![kind, head[2] & u8::from(kind == 2), 0, 0];
        start.extend_from_slice(&(content.len() as u32).to_le_bytes());
        start.extend_from_slice(&(records as u32).to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&start);
        sum.update(content);
        file.extend_from_slice(&start);
        file.extend_from_slice(&sum.finalize().to_le_bytes());
        file.extend_from_slice(content);
    }
    Some(file)
}

/// A file is refused with the number of the block, or its records are the same when they are written again.
pub fn file_refused_or_rewritten(bytes: &[u8]) {
    let Some(file) = trace_file(bytes) else { return };
    let mut copy = Vec::new();
    match rewritten(&file, &mut copy) {
        Err(refused) => {
            assert!(refused.starts_with("block ") && !refused.contains('\n'), "{refused}")
        }
        Ok(None) => {}
        Ok(Some(records)) => {
            let mut ignored = Vec::new();
            assert_eq!(rewritten(&copy, &mut ignored), Ok(Some(records)), "written by cachemark");
        }
    }
    refused_or_playable(&file);
}

/// Each line of a `metadump` is an item of a trace that can be read, or is counted.
pub fn items_or_counted(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut snapshot = Snapshot::new(1_795_829_300, 1, BTreeMap::new());
    text.lines().for_each(|line| snapshot.add(line));
    snapshot.finish();
    let conversion = Conversion {
        output: Output::Cachemark,
        anonymous: bytes.len().is_multiple_of(2),
        sampled: 1,
        rounded: false,
        tolerant: true,
        source: None,
    };
    let mut file = Vec::new();
    let written = convert_requests(&mut snapshot, "metadump", &conversion, &mut file);
    let written = written.expect("memory");
    let left_out: u64 = written.summary.left_out.values().sum();
    assert_eq!(written.records + left_out, text.lines().count() as u64);
    let mut copy = Vec::new();
    let records = rewritten(&file, &mut copy).expect("our own file").expect("records of a trace");
    assert_eq!(records.len() as u64, written.records);
}

/// The records of a file, which are also written to another one; `None` if no writer would make them.
fn rewritten(file: &[u8], copy: &mut Vec<u8>) -> Result<Option<Vec<String>>, String> {
    let mut reader = TraceReader::new(file)?;
    let mut writer = TraceWriter::new(copy, &Origin::default()).expect("memory");
    let (mut records, mut writable) = (Vec::new(), true);
    while let Some(block) = reader.next_block()? {
        for record in block {
            let record = record?;
            writable &= writer.add(&record).is_ok();
            records.push(format!("{record:?}"));
        }
    }
    writer.finish(Summary::default()).expect("memory");
    Ok(writable.then_some(records))
}

fn sound(refused: &str) {
    let placed = ["line ", "block ", "record "].iter().any(|place| refused.starts_with(place));
    assert!(placed || refused == "it is empty", "{refused}");
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
