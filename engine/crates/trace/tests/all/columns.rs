//! Files without a header, and gets that fill the cache.

use std::io::Cursor;

use cachemark_properties::traces::CLOSED;
use cachemark_tape::Verb;
use cachemark_trace::{Gets, ImportOptions, import};

use crate::common::{due_ns, left_out, operations, read_columns, tape};

#[test]
fn fields_between_quotes_may_have_commas() {
    // memtier_benchmark's files, as it writes them.
    let memtier = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
        0, 0, 60, 12, 0, 0, 1, 3, \"a,b\", \"x,\"\"y\"\",zzzz\"\n0, 0, 0, 5, 0, 0, 1, 1, \"c\", \"zzz\"\n";
    let columns = "time,-,ttl,size,-,-,-,-,key,-";
    let imported = read_columns(memtier, columns).expect("a trace");
    let keys: Vec<&[u8]> = imported.recording.keys.iter().map(Vec::as_slice).collect();
    assert_eq!(keys, [&b"a,b"[..], b"c"]);
    let odd = "\"a,1\n\"b\"c,1\n\"\"\"d\"\"\",1\n";
    let imported = read_columns(odd, "key,size").expect("quotes that are text");
    let keys: Vec<&[u8]> = imported.recording.keys.iter().map(Vec::as_slice).collect();
    assert_eq!(keys, [&b"\"a"[..], b"\"b\"c", b"\"d\""]);
    let refused = read_columns("\"a,2,1\n", "key,size").expect_err("no closing quote");
    assert!(refused.starts_with("line 1: 3 fields"), "{refused}");
}

#[test]
fn files_without_a_header_have_columns_that_are_named() {
    let ms =
        read_columns("1500,set,a,10\n1501.5,get,a,10\n", "time:ms,op,key,size").expect("a trace");
    assert_eq!(due_ns(&ms), [0, 1_500_000]);
    assert_eq!(ms.recording.lengths, [10]);
    // libCacheSim's CSV, whose operations are all reads; its header is none.
    let cachesim = "# time, object, size\n1,42932745,512\n2,42932746,512\n";
    let imported = read_columns(cachesim, "time,key,size").expect("a trace");
    assert!(operations(&tape(&imported.recording, CLOSED)).iter().all(|op| op.0 == Verb::Get));
    // IBM's object store: only some lines have a range, and some no size.
    let ibm = "1219008 REST.PUT.OBJECT 8d4f 1056\n1221974 REST.GET.OBJECT 8d4f 1528 0 1527\n1232488 REST.HEAD.OBJECT 8d4f\n";
    let imported = read_columns(ibm, "time:ms op key size - -").expect("a trace");
    for (line, fields) in [("1 REST.GET.OBJECT", 2), ("1 REST.GET.OBJECT a 1 0 1 2", 7)] {
        let refused = read_columns(line, "time:ms op key size - -").expect_err(line);
        assert!(refused.starts_with(&format!("line 1: {fields} fields")), "{refused}");
    }
    let refused = read_columns("1,a\n", "time,key,size").expect_err("an empty field has a comma");
    assert!(refused.starts_with("line 1: 2 fields, --columns names 3"), "{refused}");
    let verbs: Vec<Verb> =
        operations(&tape(&imported.recording, CLOSED)).into_iter().map(|op| op.0).collect();
    assert_eq!((verbs, left_out(&imported, "head")), (vec![Verb::Set, Verb::Get], 1));
    assert_eq!(due_ns(&imported), [0, 2_966_000_000]);
    // MSR Cambridge: Windows' file times, from 1601 on.
    let msr = "128166372003061629,src1,0,Read,8192,4096,58000\n128166372013061629,src1,0,Write,8192,4096,58000\n";
    let imported = read_columns(msr, "time:100ns,-,-,op,key,size,-").expect("a trace");
    assert_eq!(due_ns(&imported), [0, 1_000_000_000]);
    for (columns, says) in [
        ("time,op", "no key"),
        ("key,key", "key is named twice"),
        ("key,when", "\"when\" is no column"),
        ("key,time:h", "\"time\" is no column"),
    ] {
        let refused = columns.parse::<cachemark_trace::Columns>().expect_err(columns);
        assert!(refused.starts_with(says), "{refused}");
    }
    let refused = read_columns("1,a\n2,a,9\n", "time,key").expect_err("three fields");
    assert!(refused.starts_with("line 2: 3 fields, --columns names 2"), "{refused}");
}

#[test]
fn gets_that_miss_are_filled_if_that_is_asked_for() {
    let log = "op,key,size\nget,a,\nset,a,30\ngets,a,\nget,b,\nget,c,7\n";
    let options = ImportOptions { gets: Gets::CacheAside, ..ImportOptions::default() };
    let imported = import(&mut Cursor::new(log.as_bytes()), &options).expect("a trace");
    let played = operations(&tape(&imported.recording, CLOSED));
    let told: Vec<(Verb, u32)> = played.iter().map(|op| (op.0, op.2)).collect();
    assert_eq!(
        told,
        [(Verb::Fetch, 30), (Verb::Set, 30), (Verb::Fetch, 30), (Verb::Get, 0), (Verb::Fetch, 7)]
    );
    assert_eq!(imported.unfilled, 1, "nobody knows how large b is");
}
