//! The output of memcached's `watch`.

use cachemark_properties::traces::CLOSED;
use cachemark_tape::{ReplaySchedule, Verb};

use crate::common::{due_ns, left_out, operations, read, tape, verbs};

/// The output of memcached 1.6.18.
const LOG: &str = "\
OK\r
ts=1795269935.627954 gid=2 type=item_get key=foo status=not_found clsid=0 cfd=25 size=0
ts=1795269935.627969 gid=3 type=item_store key=foo status=stored cmd=set ttl=60 clsid=1 cfd=25 size=3
ts=1795269935.648204 gid=4 type=item_get key=foo status=found clsid=1 cfd=25 size=3
ts=1795269935.668418 gid=5 type=item_get key=a%2520b status=not_found clsid=0 cfd=26 size=0
skipped=17
ts=1795269935.769509 gid=11 type=item_get key=a%2520b status=not_found clsid=0 cfd=26 size=0
ts=1795269935.769516 gid=12 type=item_store key=a%2520b status=stored cmd=add ttl=0 clsid=1 cfd=26 size=1
ts=1795269935.789760 gid=14 type=item_store key=foo status=not_stored cmd=append ttl=0 clsid=1 cfd=25 size=1
";

#[test]
fn memcached_logs() {
    let imported = read(LOG, None).expect("a log");
    assert_eq!((left_out(&imported, "dropped"), left_out(&imported, "append")), (17, 1));
    assert!((imported.left_out_share() - 18.0 / 22.0).abs() < 1e-9);
    let tape = tape(&imported.recording, ReplaySchedule::Recorded { speed: 1.0 });
    let spaced = "a%20b".to_owned();
    assert_eq!(
        operations(&tape),
        [
            (Verb::Set, "foo".to_owned(), 3, 60),
            (Verb::Get, "foo".to_owned(), 0, 0),
            (Verb::Get, spaced.clone(), 0, 0),
            (Verb::Add, spaced, 1, 0),
        ],
        "what a store looks up is no read"
    );
    assert_eq!(tape.due_ns(1), 20_235_000, "to the microsecond");
}

/// A watch log of gets of the key `k` at these times, in the words of memcached.
fn watched(times: &[&str]) -> String {
    let line = |(gid, ts): (usize, &&str)| {
        format!("ts={ts} gid={gid} type=item_get key=k status=found clsid=1 cfd=9 size=3\n")
    };
    times.iter().enumerate().map(line).collect()
}

#[test]
fn microseconds_of_memcached_have_no_leading_zeros() {
    let times = ["7.0", "7.5", "7.45", "7.9884", "7.12345", "7.30069", "7.400000", "8.6"];
    let imported = read(&watched(&times), None).expect("a log");
    let microseconds = [0, 5, 45, 9_884, 12_345, 30_069, 400_000, 1_000_006];
    assert_eq!(due_ns(&imported), microseconds.map(|at| at * 1000));
    for wrong in ["7", "7.", ".5", "7.1234567", "7.-5", "-7.5", "7.5e3", "x.5"] {
        let refused = read(&watched(&["1.0", wrong]), None).expect_err(wrong);
        assert!(refused.starts_with("line 2: ts="), "{refused}");
    }
}

#[test]
fn lines_of_several_workers_are_put_in_order() {
    let line = |ts: &str, gid: u32, key: &str| {
        format!("ts={ts} gid={gid} type=item_get key={key} status=found clsid=1 cfd={gid} size=3\n")
    };
    let log = [
        line("5.900", 4, "d"),
        line("5.900", 3, "c"),
        line("5.20", 1, "a"),
        line("6.1", 5, "e"),
        line("5.100", 2, "b"),
    ]
    .concat();
    let imported = read(&log, None).expect("a log");
    let keys: Vec<String> =
        operations(&tape(&imported.recording, CLOSED)).into_iter().map(|op| op.1).collect();
    assert_eq!(keys.concat(), "abcde");
    assert_eq!(due_ns(&imported), [0, 80_000, 880_000, 880_000, 999_981_000]);
}

#[test]
fn deletes_are_one_operation_and_evictions_are_none() {
    // The output of memcached 1.6.45: a set, a get and a delete; then a delete that finds nothing, which has no line.
    let log = "\
ts=1795705048.380718 gid=2 type=item_get key=a status=not_found clsid=0 cfd=27 size=0
ts=1795705048.380723 gid=3 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=27 size=3
ts=1795705048.430993 gid=4 type=item_get key=a status=found clsid=1 cfd=27 size=3
ts=1795705048.482081 gid=5 type=item_get key=a status=found clsid=1 cfd=27 size=3
ts=1795705048.482082 gid=6 type=deleted key=a cmd=delete clsid=1 size=3
ts=1795705048.532480 gid=7 type=eviction key=z fetch=no ttl=-1 la=9 clsid=1 size=70
ts=1795705048.532481 gid=8 type=conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=9
";
    let imported = read(log, None).expect("a log");
    assert_eq!(verbs(&imported), [Verb::Set, Verb::Get, Verb::Delete]);
    assert_eq!(imported.other_lines.values().sum::<u64>(), 2);
    assert_eq!(imported.left_out_share(), 0.0);
}

#[test]
fn a_delayed_store_still_owns_its_look_up() {
    let lines = |at: u32, wait: u32| {
        format!(
            "ts=9.{at} gid={at} type=item_get key=k status=found clsid=1 cfd=7 size=3\n\
             ts=9.{stored} gid={stored} type=item_store key=k status=stored cmd=set ttl=0 clsid=1 cfd=7 size=3\n",
            stored = at + wait
        )
    };
    let waited = read(&(lines(1000, 400) + &lines(2000, 9)), None).expect("a log");
    assert_eq!(verbs(&waited), [Verb::Set, Verb::Set]);
    let not_its_own = read(&lines(1000, 50_001), None).expect("a log");
    assert_eq!(verbs(&not_its_own), [Verb::Get, Verb::Set], "its own line was dropped");
}

#[test]
fn keys_that_are_no_text_get_names() {
    let long = "%FF".repeat(100);
    let line = |gid: usize, key: &str| {
        format!(
            "ts=7.{gid} gid={gid} type=item_get key={key} status=found clsid=1 cfd={gid} size=3\n"
        )
    };
    let keys = ["ns%3A%FF%00%25", "ns%3A%FE", "%C3%A9", &long];
    let log: String = keys.iter().enumerate().map(|(gid, key)| line(gid, key)).collect();
    let imported = read(&log, None).expect("a log");
    assert_eq!(imported.left_out_share(), 0.0);
    let mut names: Vec<String> = imported
        .recording
        .keys
        .iter()
        .map(|key| String::from_utf8(key.clone()).expect("text"))
        .collect();
    let last = names.pop().expect("four keys");
    assert_eq!(names, ["ns:%FF%00%25", "ns:%FE", "é"]);
    assert_eq!((last.len(), &last[..6]), (250, "%FF%FF"));
}
