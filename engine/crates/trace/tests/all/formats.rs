//! Each format from a synthetic sample. Every invalid line gives an error that names it.

use std::io::Cursor;

use cachemark_properties::traces::{CLOSED, columns_or_a_reason, refused_or_playable};
use cachemark_tape::{Arrivals, ReplaySchedule, Schedule, Tape, Verb};
use cachemark_trace::{Format, ImportOptions, import};
use proptest::prelude::*;

use crate::common::{TWITTER, left_out, operations, read, tape};

#[test]
fn twitter_traces() {
    let imported = read(TWITTER, None).expect("a trace");
    assert_eq!((imported.lines, left_out(&imported, "append")), (6, 1));
    let recording = &imported.recording;
    assert_eq!((recording.keys.len(), recording.counters), (4, 1));
    assert_eq!(recording.lengths[..3], [213, 27, 40]);
    assert!(recording.has_whole_seconds());
    let tape = tape(recording, ReplaySchedule::Recorded { speed: 2.0 });
    let key = "q:q:1:8WTfjZU14ee".to_owned();
    let played = operations(&tape);
    assert_eq!(played.len(), 5);
    assert_eq!(played[0], (Verb::Get, key, 0, 0));
    assert_eq!(played[2], (Verb::Set, "has,a,comma".to_owned(), 40, 86_400));
    assert_eq!(played[4], (Verb::Incr, "n:1".to_owned(), 1, 0));
    // The first is at 0. Two are within the first second and two in the second one, twice as fast.
    let due: Vec<u64> = (0..5).map(|j| tape.due_ns(j)).collect();
    assert_eq!(due[0], 0);
    assert!(due.is_sorted() && due[1] < 500_000_000 && due[4] < 1_000_000_000, "{due:?}");
}

#[test]
fn arrivals_within_a_second_are_drawn_once_and_for_all() {
    let line = "7,key,3,10,1,get,0\n";
    let imported = read(&line.repeat(10_000), Some(Format::Twitter)).expect("a trace");
    let replay = ReplaySchedule::Recorded { speed: 1.0 };
    let make = |seed| imported.recording.tape(replay, 1.0, 0.0, seed).expect("a tape");
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
    let tape = Tape::from_bytes(make(1)).expect("our own tape");
    // Uniform order statistics: sup
    //
    // Fₙ − F
    //
    // is below the 99 % limit for 10⁴ draws.
    let far = (0..10_000)
        .map(|j| (tape.due_ns(j) as f64 / 1e9 - (j + 1) as f64 / 1e4).abs())
        .fold(0.0, f64::max);
    assert!(far < 0.0163, "{far}");
}

#[test]
fn cachelib_traces_of_both_years() {
    let v1 = "key,op,size,op_count,key_size\n1668601306,GET,82,1,40\n1668601306,SET,82,2,40\n9,DELETE,0,1,16\n";
    let imported = read(v1, None).expect("a trace");
    let played = operations(&tape(&imported.recording, CLOSED));
    let long = format!("1668601306{}", "_".repeat(30));
    assert_eq!(played[0], (Verb::Get, long.clone(), 0, 0));
    assert_eq!(played[1..3], [(Verb::Set, long.clone(), 82, 0), (Verb::Set, long, 82, 0)]);
    assert_eq!(played[3].0, Verb::Delete);
    let refused = imported.recording.tape(ReplaySchedule::Recorded { speed: 1.0 }, 1.0, 0.0, 1);
    assert!(refused.expect_err("no times").0.contains("the trace has no times"));
    let v2 = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
              1700000000,57,20,GET_LEASE,3,500,2,0,11,12\n1700000001,57,20,SET_LEASE,1,500,0,3600,11,12\n";
    let imported = read(v2, None).expect("a trace");
    let played = operations(&tape(&imported.recording, ReplaySchedule::Recorded { speed: 1.0 }));
    assert_eq!(played.len(), 4);
    assert!(played[..3].iter().all(|op| op.0 == Verb::Get));
    assert_eq!((played[3].0, played[3].2, played[3].3), (Verb::Set, 500, 3600));
}

#[test]
fn what_is_left_out_is_counted_by_its_reason() {
    let log =
        "op,key,timestamp,size\nget,a,1,5\nfetch,a,2,5\nfetch,a,3,5\ntruncate,b,4,5\nset,a,5,5\n";
    let imported = read(log, None).expect("a trace");
    assert_eq!((left_out(&imported, "fetch"), left_out(&imported, "truncate")), (2, 1));
    assert_eq!(imported.left_out_share(), 0.6);
    assert!(imported.reasons().starts_with("2 fetch, which tapes do not support, 1 truncate"));
    assert_eq!(imported.unused_columns, ["timestamp"]);
    assert_eq!((imported.lines, imported.recording.ops.len()), (6, 2));
}

#[test]
fn a_header_that_names_a_column_twice_is_refused() {
    let refused = read("op,key,size,Size\nset,a,7,9\n", None).expect_err("two sizes");
    assert!(refused.contains("line 1: the header names \"size\" twice"), "{refused}");
}

#[test]
fn a_byte_order_mark_is_outside_the_first_column() {
    let imported = read("\u{feff}size,op,key\r\n7,set,a\r\n", None).expect("a trace");
    assert_eq!(imported.recording.lengths, [7]);
    assert!(imported.unused_columns.is_empty());
}

#[test]
fn the_format_is_recognised_from_the_first_lines() {
    let cut = "tus=found clsid=1 cfd=24 size=3\n";
    let whole = "ts=7.5 gid=1 type=item_get key=k status=found clsid=1 cfd=9 size=3\n";
    let refused = read(&format!("{cut}{whole}"), None).expect_err("a part of a line");
    assert!(refused.starts_with("line 1: type= is missing"), "{refused}");
    let kvcache = "key,op,size,op_count,key_size\n1,GET,82,1,40\n";
    let refused = read(kvcache, Some(Format::Csv)).expect_err("another format");
    assert!(refused.contains("looks like kvcache, but the format was said to be csv"), "{refused}");
    let refused = read(TWITTER, Some(Format::Memcached)).expect_err("another format");
    assert!(refused.contains("looks like twitter"), "{refused}");
    assert_eq!(read("\n\nop,key\nget,a\n", None).expect("a trace").format, "csv");
}

const CSV: &str =
    "time,op,key,size,ttl,comment\n0.5,get,a,,,x\n0.75,set,b,100,60,y\n1.25,get,b,100,,\n";

#[test]
fn plain_csv() {
    let imported = read(CSV, None).expect("a trace");
    let tape = tape(&imported.recording, ReplaySchedule::Recorded { speed: 0.5 });
    assert_eq!((0..3).map(|j| tape.due_ns(j)).collect::<Vec<_>>(), [0, 500_000_000, 1_500_000_000]);
    assert_eq!(operations(&tape)[1], (Verb::Set, "b".to_owned(), 100, 60));
    assert_eq!(tape.value_length(1), 100);
}

#[test]
fn a_trace_takes_any_schedule() {
    let imported = read(CSV, None).expect("a trace");
    let open =
        Schedule::Open { arrivals: Arrivals::Uniform, rate: 10.0, duration_ns: 1_000_000_000 };
    let tape = tape(&imported.recording, ReplaySchedule::Schedule(open));
    assert_eq!((tape.op_count(), tape.due_ns(9)), (10, 900_000_000));
    assert_eq!(operations(&tape)[3], operations(&tape)[0], "it begins again");
}

fn at_most(max_ops: u64) -> ImportOptions {
    ImportOptions { max_ops, ..ImportOptions::default() }
}

#[test]
fn max_ops_limits_the_import() {
    let imported = import(&mut Cursor::new(TWITTER.as_bytes()), &at_most(2)).expect("a trace");
    assert_eq!((imported.recording.ops.len(), imported.lines), (2, 2));
    let many = "key,op,size,op_count,key_size\n1,GET,82,1000,40\n";
    let imported = import(&mut Cursor::new(many.as_bytes()), &at_most(7)).expect("a trace");
    assert_eq!(imported.recording.ops.len(), 7);
}

#[test]
fn a_bad_line_is_one_error_that_names_it() {
    for (format, text, says) in [
        (Format::Twitter, "0,a,1,2,3,get,0\n0,a,1,2,3", "line 2: it needs timestamp,key"),
        (Format::Twitter, "x,a,1,2,3,get,0", "line 1: time \"x\" is not a number of seconds"),
        (Format::Twitter, "0,a,1,-2,3,get,0", "line 1: value size \"-2\" is not a number"),
        (Format::Twitter, "0,a,1,999999999,3,get,0", "line 1: value size 999999999: at most"),
        (Format::Twitter, "0,a b,1,2,3,get,0", "line 1: key \"a b\": keys are 1 to 250 bytes"),
        (Format::Twitter, "0,a,1,2,3,g?t,0", "line 1: \"g?t\" is not an operation"),
        (Format::Twitter, "9,a,1,2,3,get,0\n1,a,1,2,3,get,0", "line 2: its time is before"),
        (
            Format::Kvcache,
            "key,op\n1,GET",
            "line 1: it looks like csv, but the format was said to be kvcache",
        ),
        (Format::Kvcache, "key;op\n1;GET", "line 1: it must be a header"),
        (Format::Kvcache, "key,op,size,op_count,key_size\n1,GET,5", "line 2: 3 fields"),
        (Format::Kvcache, "key,op,size,op_count,key_size\n1,GET,5,x,4", "line 2: operation count"),
        (Format::Csv, "time,key\n", "line 1: it must be a header"),
        (Format::Csv, "op,key\nget,a\n\nget\n", "line 4: 1 fields, the header has 2"),
        (Format::Csv, "op,key,ttl\nset,a,soon\n", "line 2: expiry time \"soon\""),
        (Format::Memcached, "ts=1.0 gid=1 key=a", "line 1: type= is missing"),
        (Format::Memcached, "ts=1.0 gid=1 type=item_get key=a%2", "line 1: key \"a%2\": a %"),
        (Format::Memcached, "skipped=many", "line 1: \"skipped=many\": how many?"),
    ] {
        let refused = read(text, Some(format)).expect_err(text);
        assert!(refused.starts_with(says), "{refused}");
    }
    assert!(read("", None).is_err());
    assert!(read("what is this?\n", None).expect_err("no format").contains("--trace-format"));
    let none = read("op,key\nappend,a\n", None).expect("a trace").recording;
    assert!(none.tape(CLOSED, 1.0, 0.0, 1).is_err(), "nothing to play");
}

/// Lines that resemble a format, and lines that do not.
fn lines() -> impl Strategy<Value = String> {
    let near = prop_oneof![
        "[0-9]{1,3},[a-z,%]{0,9},[0-9]{1,4},[0-9]{1,9},[0-9],(get|set|incr|x?),[0-9-]{0,5}",
        "[0-9]{0,4},(GET|SET|DELETE|GET_LEASE),[0-9]{0,9},[0-9]{0,9},[0-9]{0,9}",
        "ts=[0-9.]{0,22} gid=[0-9]{1,2} type=(item_get|item_store|deleted|eviction) key=[a-z0-9%]{0,6} cmd=(set|add) ttl=-?[0-9] cfd=[12] size=[0-9]{0,4}",
        "(key|op|size|op_count|key_size|time|,){1,9}",
        "skipped=[0-9]{0,25}",
        ".{0,60}",
    ];
    prop::collection::vec(near, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_trace_can_crash_it(text in lines()) {
        refused_or_playable(text.as_bytes());
    }

    #[test]
    fn no_bytes_can_crash_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        refused_or_playable(&bytes);
    }

    #[test]
    fn no_names_of_columns_can_crash_it(text in "(time|key|op|size|ttl|-|:ms|:h|,|;| ){0,9}.{0,5}") {
        columns_or_a_reason(&text);
    }
}
