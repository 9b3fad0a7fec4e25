//! cachemark's own format: what is written is read again, and what is damaged is refused.

use std::io::Cursor;

use cachemark_properties::traces::CLOSED;
use cachemark_tape::Verb;
use cachemark_trace::file::{Keys, Origin, Record, Summary, TraceReader, TraceWriter};
use cachemark_trace::{Conversion, Converted, ImportOptions, Output, convert, import};

use crate::common::{TWITTER, left_out, operations, read, tape};

const TO_FILE: Conversion = Conversion {
    output: Output::Cachemark,
    anonymous: false,
    sampled: 1,
    rounded: false,
    tolerant: false,
    source: None,
};

fn converted(text: &[u8], conversion: &Conversion) -> (Converted, Vec<u8>) {
    let mut file = Vec::new();
    let done = convert(
        &mut Cursor::new(text),
        &ImportOptions::default(),
        conversion,
        &mut file,
        &mut |_| (),
    );
    (done.expect("it can be converted"), file)
}

fn records(file: &[u8]) -> Result<Vec<String>, String> {
    let mut reader = TraceReader::new(file)?;
    let mut records = Vec::new();
    while let Some(block) = reader.next_block()? {
        for record in block {
            records.push(format!("{:?}", record?));
        }
    }
    Ok(records)
}

/// Records of all kinds: more than a block holds, with and without times.
fn written() -> (Vec<String>, Vec<u8>) {
    let mut file = Vec::new();
    let origin = Origin { source: "a test".to_owned(), keys: Keys::Plain, sampled: 1 };
    let mut writer = TraceWriter::new(&mut file, &origin).expect("a file");
    let keys: Vec<String> = (0..3000).map(|number| format!("key:{number}")).collect();
    let mut all = Vec::new();
    for number in 0..150_000_u32 {
        let record = Record {
            at_ns: (number < 140_000).then_some(u64::from(number / 3) * 1_000_003),
            operation: ["get", "set", "append"][number as usize % 3],
            key: keys[(number as usize * 7919) % keys.len()].as_bytes(),
            key_bytes: number.is_multiple_of(5).then_some(40),
            length: number.is_multiple_of(2).then_some(number),
            ttl_s: number % 4 * 1000,
            count: 1 + number % 2 * 300,
            client: (!number.is_multiple_of(11)).then_some(number % 70_000),
            succeeded: [None, Some(true), Some(false)][number as usize / 7 % 3],
            joined: number.is_multiple_of(13),
        };
        writer.add(&record).expect("written");
        all.push(format!("{record:?}"));
    }
    let counts = writer.finish(Summary::default()).expect("written");
    assert_eq!(counts, (150_000, file.len() as u64));
    (all, file)
}

#[test]
fn what_is_written_is_read() {
    let (all, file) = written();
    assert_eq!(records(&file).expect("our own file"), all);
    assert!(file.len() < 150_000 * 20, "{} bytes", file.len());
}

#[test]
fn each_damaged_byte_and_each_cut_is_refused() {
    let (_, file) = converted(TWITTER.as_bytes(), &TO_FILE);
    assert_eq!(records(&file).expect("our own file").len(), 6);
    for at in 0..file.len() {
        let cut = records(&file[..at]).expect_err("cut off");
        assert!(cut.starts_with("block "), "{cut}");
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let refused = records(&damaged).expect_err("damaged");
        assert!(refused.starts_with("block ") && !refused.contains('\n'), "{refused}");
    }
    let longer = records(&[file, b"x".to_vec()].concat()).expect_err("more");
    assert!(longer.contains("follows the end"), "{longer}");
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let (_, mut file) = converted(TWITTER.as_bytes(), &TO_FILE);
    file[7] = 2;
    let refused = import(&mut Cursor::new(&file), &ImportOptions::default()).expect_err("version");
    assert!(refused.contains("version 2") && refused.contains("version 1"), "{refused}");
}

#[test]
fn a_record_before_the_one_above_is_refused() {
    let record = |at_ns| Record {
        at_ns: Some(at_ns),
        operation: "get",
        key: b"k",
        key_bytes: None,
        length: None,
        ttl_s: 0,
        count: 1,
        client: None,
        succeeded: None,
        joined: false,
    };
    let mut writer = TraceWriter::new(Vec::new(), &Origin::default()).expect("a file");
    writer.add(&record(5)).expect("written");
    assert!(writer.add(&record(4)).is_err());
    assert!(writer.add(&Record { key: b"", ..record(5) }).is_err());
    assert!(writer.add(&Record { operation: "", ..record(5) }).is_err());
}

#[test]
fn a_converted_trace_plays_the_same() {
    let log = "\
OK
ts=5.100 gid=2 type=item_get key=b status=not_found clsid=0 cfd=7 size=0
ts=5.20 gid=1 type=item_get key=a status=found clsid=1 cfd=8 size=3
ts=5.30 gid=4 type=item_get key=a status=not_found clsid=0 cfd=8 size=0
ts=5.31 gid=5 type=item_store key=a status=stored cmd=set ttl=60 clsid=1 cfd=8 size=9
skipped=1
ts=7.1 gid=6 type=eviction key=z fetch=no ttl=-1 la=9 clsid=1 size=70
ts=7.2 gid=7 type=item_store key=b status=stored cmd=append ttl=0 clsid=1 cfd=7 size=1
";
    for text in [TWITTER, log] {
        let (done, file) = converted(text.as_bytes(), &TO_FILE);
        let direct = read(text, None).expect("a trace");
        let options = ImportOptions::default();
        let again = import(&mut Cursor::new(&file), &options).expect("our own file");
        assert_eq!(format!("{:?}", again.recording), format!("{:?}", direct.recording));
        assert_eq!((&again.left_out, &again.other_lines), (&direct.left_out, &direct.other_lines));
        assert_eq!((again.format, again.lines), ("cachemark", done.records));
        let second = converted(&file, &TO_FILE);
        assert_eq!(second.1, file, "converted again, it is the same file");
    }
    assert_eq!(left_out(&read(log, None).expect("a log"), "dropped"), 1);
}

#[test]
fn csv_comes_out_and_goes_in() {
    let to_csv = Conversion { output: Output::Csv, ..TO_FILE };
    let (_, csv) = converted(TWITTER.as_bytes(), &to_csv);
    let csv = String::from_utf8(csv).expect("text");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "time,op,key,size,ttl,key_size,count");
    assert_eq!(lines[1], "0.000000000,get,q:q:1:8WTfjZU14ee,213,0,17,1");
    assert!(csv.contains(",set,\"has,a,comma\",40,"), "{csv}");
    let [again, direct] = [&csv, TWITTER].map(|text| read(text, None).expect("a trace").recording);
    assert_eq!(format!("{again:?}"), format!("{direct:?}"));
}

#[test]
fn no_reader_can_restore_anonymous_keys() {
    let anonymous = Conversion { anonymous: true, ..TO_FILE };
    let text = "\
time,op,key,size,ttl
0,get,user:12345,10,0
1,get,user:67890,10,0
2,get,user:12345,10,0
3,get,page:12345,10,0
4,get,12345,10,0
";
    let (done, file) = converted(text.as_bytes(), &anonymous);
    assert_eq!(done.origin.keys, Keys::Anonymous);
    for secret in ["user", "page", "12345", "67890"] {
        let found = file.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{secret}");
    }
    let imported = import(&mut Cursor::new(&file), &ImportOptions::default()).expect("a file");
    let keys: Vec<String> =
        operations(&tape(&imported.recording, CLOSED)).into_iter().map(|op| op.1).collect();
    assert_eq!((&keys[0], keys[0] != keys[1]), (&keys[2], true));
    let namespaces = keys.iter().map(|key| key.split_once(':').map_or("", |(name, _)| name));
    assert_eq!(namespaces.collect::<Vec<_>>(), ["a", "a", "a", "b", ""]);
    assert!(records(&file).expect("records")[0].contains("key_bytes: Some(10)"));
    assert_ne!(converted(text.as_bytes(), &anonymous).1, file, "another key each time");
    assert_eq!(converted(&file, &TO_FILE).0.origin.keys, Keys::Anonymous, "it stays known");
}

#[test]
fn a_sample_has_all_requests_of_a_key_or_none() {
    let keys = 20_000;
    let lines = (0..keys * 3).map(|at| format!("{at},get,k{},9\n", at % keys));
    let text = "time,op,key,size\n".to_owned() + &lines.collect::<String>();
    let (done, file) = converted(text.as_bytes(), &Conversion { sampled: 10, ..TO_FILE });
    assert_eq!(done.summary.operations["get"], keys * 3, "what was read");
    assert_eq!(done.origin.sampled, 10);
    let imported = import(&mut Cursor::new(&file), &ImportOptions::default()).expect("a file");
    let sampled = imported.recording.keys.len() as u64;
    assert_eq!(imported.recording.ops.len() as u64, sampled * 3);
    assert!((1500..2500).contains(&sampled), "{sampled} of 20,000");
}

#[test]
fn odd_lines_are_counted_where_they_may_be() {
    let log = "\
OK
ts=9.1 gid=1 type=item_get key=a status=found clsid=1 cfd=8 size=3
what is this
ts=3.1 gid=2 type=item_get key=b status=found clsid=1 cfd=8 size=3
ts=3.5 gid=3 type=item_get key=%ff status=found clsid=1 cfd=8 size=3
";
    let tolerant = Conversion { tolerant: true, ..TO_FILE };
    let (done, file) = converted(log.as_bytes(), &tolerant);
    assert_eq!(done.summary.left_out["that were not understood"], 1);
    let imported = import(&mut Cursor::new(&file), &ImportOptions::default()).expect("a file");
    let times = [0, 0, 4_000];
    assert_eq!(imported.recording.times_ns, times, "a clock that goes back stands still");
    assert_eq!(imported.recording.ops.iter().filter(|op| op.verb == Verb::Get).count(), 3);
    assert_eq!(imported.recording.keys[2], b"%FF");
}

#[test]
fn keys_of_one_request_are_joined() {
    let line = |ts: &str, gid: u32, cfd: u32| {
        format!(
            "ts={ts} gid={gid} type=item_get key=k{gid} status=found clsid=1 cfd={cfd} size=3\n"
        )
    };
    let log = [line("5.1", 1, 8), line("5.9", 2, 8), line("5.10", 3, 9), line("5.12", 4, 8)];
    let log = log.concat() + &line("5.500", 5, 8);
    let (_, file) = converted(log.as_bytes(), &TO_FILE);
    let joined = records(&file).expect("records");
    let joined: Vec<bool> = joined.iter().map(|record| record.contains("joined: true")).collect();
    assert_eq!(joined, [false, true, false, true, false]);
}
