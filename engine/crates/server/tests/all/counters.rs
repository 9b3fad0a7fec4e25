//! The counters of `stats`, and commands whose replies depend on what came before them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cachemark_server::{Endpoint, IoMode, Settings, State, start};
use cachemark_storage::Store;

use crate::targets::{Target, VERSION, embedded, memcached_with, serving, settings};

const PATIENCE: Duration = Duration::from_secs(60);

/// Text that begins with an error behind other commands.
const ALONE: [&str; 3] = ["lru_crawler metadump all", "lru_crawler metadump 99", "watch fetchers"];

fn assert_only_alone(target: &Target) {
    for command in ALONE {
        let words: Vec<&str> = command.split(' ').collect();
        let name = if words[0] == "watch" { words[0] } else { words[1] };
        let expected = format!("EN\r\nERROR cannot pipeline other commands before {name}\r\n");
        let request = format!("mg none v\r\n{command}\r\n");
        let reply = target.exchange(request.as_bytes(), usize::MAX, false);
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{}", target.told);
        if name == "watch" {
            continue;
        }
        // What is sent at once does not count.
        for (first, its_reply) in [("get a", "END"), ("gets a b", "END"), ("mn", "MN")] {
            let request = format!("mg none v\r\n{first}\r\n{command}\r\n");
            let reply = target.exchange(request.as_bytes(), usize::MAX, false);
            let (reply, begins) =
                (String::from_utf8_lossy(&reply), format!("EN\r\n{its_reply}\r\n"));
            assert!(reply.starts_with(&begins) && !reply.contains("pipeline"), "{first}: {reply}");
        }
    }
}

#[test]
fn a_dump_behind_other_commands_is_refused_as_by_memcached() {
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        assert_only_alone(&target);
    }
    let (_memcached, target) = memcached_with(&[]);
    assert_only_alone(&target);
}

/// The replies to a number that is counted up, and how often the connection let others come first.
fn counted_up(target: &Target, requests: usize) -> (String, u64) {
    let request = format!("set n 0 0 1\r\n0\r\n{}", "incr n 1\r\n".repeat(requests));
    let reply = target.exchange(request.as_bytes(), usize::MAX, false);
    (String::from_utf8(reply).expect("text"), counted(target, "conn_yields"))
}

#[test]
fn a_connection_yields_after_its_number_of_requests() {
    let replies: String = (1..=30).map(|n| format!("{n}\r\n")).collect();
    for io in IoMode::available() {
        let settings = Settings { requests_per_event: Some(4), ..settings(io) };
        let (_server, target) = serving(State::new(settings, VERSION));
        let (replied, yields) = counted_up(&target, 30);
        assert_eq!(replied, format!("STORED\r\n{replies}"), "{io:?}");
        assert!((1..=7).contains(&yields), "{io:?}: {yields}");
        // Nothing waits for a reply that is never sent.
        let silent = "incr n 1 noreply\r\n".repeat(30) + "get n\r\n";
        let reply = target.exchange(silent.as_bytes(), usize::MAX, false);
        assert_eq!(reply, b"VALUE n 0 2\r\n60\r\nEND\r\n", "{io:?}");
    }
    let (_server, target) = embedded(IoMode::Events);
    assert_eq!(counted_up(&target, 30).1, 0, "without the option");
    let (_memcached, target) = memcached_with(&["-R", "4"]);
    assert!(counted_up(&target, 30).1 > 0);
}

#[test]
fn gets_of_flushed_items_are_counted_as_by_memcached() {
    let (_server, embedded) = embedded(IoMode::Events);
    // Its threads would remove flushed items meanwhile.
    let (_memcached, memcached) = memcached_with(&["-o", "no_lru_crawler,no_lru_maintainer"]);
    for target in [embedded, memcached] {
        target.exchange(b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\n", usize::MAX, false);
        // memcached flushes what is older than the present second.
        let began = Instant::now();
        while target.exchange(b"flush_all\r\nget a\r\n", usize::MAX, false) != b"OK\r\nEND\r\n" {
            assert!(began.elapsed() < PATIENCE, "{}", target.told);
        }
        assert_eq!(counted(&target, "get_flushed"), 1, "{}", target.told);
        target.exchange(b"get a\r\nget c\r\nget b\r\n", usize::MAX, false);
        assert_eq!(counted(&target, "get_flushed"), 2, "{}", target.told);
        assert_eq!(counted(&target, "get_misses"), 4, "{}", target.told);
    }
}

/// A text reply to these bytes.
fn replied(target: &Target, request: &str) -> String {
    let reply = target.exchange(request.as_bytes(), usize::MAX, false);
    String::from_utf8(reply).expect("text")
}

#[test]
fn flushed_items_are_reclaimed_as_by_memcached() {
    let (_server, embedded) = embedded(IoMode::Events);
    let (_memcached, memcached) = memcached_with(&[]);
    for target in [embedded, memcached] {
        replied(&target, "set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\nget b\r\nget b\r\n");
        let began = Instant::now();
        // memcached flushes what is older than the present second, and removes it in the background.
        while counted(&target, "reclaimed") < 2 {
            replied(&target, "flush_all\r\n");
            assert!(began.elapsed() < PATIENCE, "{}", target.told);
        }
        assert_eq!(counted(&target, "curr_items"), 0, "{}", target.told);
        assert_eq!(counted(&target, "reclaimed"), 2, "{}", target.told);
        assert_eq!(counted(&target, "expired_unfetched"), 1, "{}", target.told);
    }
}

/// Commands for items of the first, a middle and the last class of sizes.
fn sized_commands() -> String {
    let value = |bytes: usize| "x".repeat(bytes);
    let set = |key: &str, flags: u32, bytes: usize| {
        format!("set {key} {flags} 0 {bytes}\r\n{}\r\n", value(bytes))
    };
    [
        set("a", 0, 1),
        set("edge", 0, 33),
        // The flags move it to the next class.
        set("past", 1, 33),
        set("n", 0, 2).replace("xx", "98"),
        set("middle", 0, 66_560),
        set("again", 0, 66_560),
        set("again", 0, 5),
        set("gone", 0, 66_560),
        set("large", 7, 500_000),
        "get a middle gone none\r\nmg large\r\nmg middle t\r\ngat 0 middle\r\ntouch a 0\r\n"
            .to_owned(),
        "delete gone\r\nincr n 1\r\ndecr n 1\r\nincr n 5\r\ncas middle 0 0 1 1\r\nx\r\n".to_owned(),
        "add middle 0 0 70\r\n".to_owned()
            + &value(70)
            + "\r\nmd edge q\r\nappend past 0 0 9\r\n123456789\r\n",
    ]
    .concat()
}

/// The rows of `stats items` and `stats slabs` that count by size.
fn counted_by_size(target: &Target) -> Vec<String> {
    const NAMES: [&str; 17] = [
        "number",
        "mem_requested",
        "evicted",
        "outofmemory",
        "reclaimed",
        "expired_unfetched",
        "chunk_size",
        "chunks_per_page",
        "get_hits",
        "cmd_set",
        "delete_hits",
        "incr_hits",
        "decr_hits",
        "cas_hits",
        "cas_badval",
        "touch_hits",
        "active_slabs",
    ];
    let reply = replied(target, "stats items\r\nstats slabs\r\n");
    let name = |line: &str| {
        line.split(' ').nth(1).and_then(|name| name.rsplit(':').next().map(str::to_owned))
    };
    let mut rows: Vec<String> = reply
        .lines()
        .filter(|line| name(line).is_some_and(|name| NAMES.contains(&name.as_str())))
        // memcached 1.6.18 also says how much of the chunks is asked for.
        .filter(|line| !line.contains("mem_requested") || line.contains("items:"))
        .map(str::to_owned)
        .collect();
    rows.sort();
    rows
}

#[test]
fn items_are_counted_by_size_as_by_memcached() {
    let (_server, embedded) = embedded(IoMode::Events);
    let (_memcached, memcached) = memcached_with(&[]);
    let [ours, expected] = [embedded, memcached].map(|target| {
        replied(&target, &sized_commands());
        let counted = counted_by_size(&target);
        let dumped = replied(&target, "lru_crawler metadump 31\r\n");
        assert!(dumped.contains("key=middle") && !dumped.contains("key=a "), "{dumped}");
        let classes = replied(&target, "me a\r\nme past\r\nme middle\r\n");
        let classes: Vec<String> = classes
            .split([' ', '\n'])
            .filter(|word| word.starts_with("cls=") || word.starts_with("size="))
            .map(str::to_owned)
            .collect();
        // memcached's background threads may move an item meanwhile, which then is missing there.
        let listed = replied(&target, "stats cachedump 31 0\r\n");
        assert!(target.memcached.is_some() || listed.contains("ITEM middle "), "{listed}");
        assert!(!listed.contains("ITEM a "), "{listed}");
        (counted, classes)
    });
    assert_eq!(ours, expected);
    assert!(ours.0.len() > 30, "{ours:?}");
}

#[test]
fn without_cas_no_comparison_succeeds_as_in_memcached() {
    let store = Store::new(64 << 20);
    store.disable_cas();
    let (_server, embedded) = serving(State::with_store(store, settings(IoMode::Events), VERSION));
    let (_memcached, memcached) = memcached_with(&["-C"]);
    let long = "x".repeat(20_000);
    let request = format!(
        "set a 0 0 1\r\nx\r\ngets a\r\ncas a 0 0 1 0\r\ny\r\ncas a 0 0 1 5\r\ny\r\nmg a c v\r\n\
         ms a 1 c C5\r\nq\r\nms a 1 C0\r\nw\r\nms a 1 c\r\nz\r\nmd a C7\r\nincr a 1\r\nset n 0 0 1\r\n5\r\nincr n 1\r\n\
         mg n c\r\nms b 20000 c\r\n{long}\r\nmg b c\r\nma n C1\r\nma n c\r\n"
    );
    assert_eq!(replied(&embedded, &request), replied(&memcached, &request));
}

/// The number behind a name in the reply to `stats`.
fn counted(target: &Target, name: &str) -> u64 {
    let reply = String::from_utf8(target.exchange(b"stats\r\n", usize::MAX, false)).expect("text");
    let line = reply.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.unwrap_or_else(|| panic!("{name} in {reply}")).parse().expect("a number")
}

#[test]
fn items_that_have_expired_are_removed_without_being_asked_for() {
    let state = Arc::new(State::new(settings(IoMode::Events), VERSION));
    let endpoints = [Endpoint::Tcp("127.0.0.1:0".to_owned())];
    let server = start(&endpoints, &state).expect("a server");
    let target = Target::embedded(server.addresses[0].clone());
    let sets: String = (0..5000).map(|n| format!("set {n} 0 2 1 noreply\r\nx\r\n")).collect();
    let sets = format!("{sets}set stays 0 0 1 noreply\r\nx\r\nget 7\r\n");
    target.exchange(sets.as_bytes(), usize::MAX, false);
    assert_eq!(counted(&target, "curr_items"), 5001);
    state.clock.advance(5);
    let began = Instant::now();
    while counted(&target, "curr_items") > 1 {
        assert!(began.elapsed() < PATIENCE, "they are still there");
        thread::yield_now();
    }
    assert_eq!(counted(&target, "reclaimed"), 5000);
    assert_eq!(counted(&target, "crawler_reclaimed"), 0);
    assert_eq!(counted(&target, "expired_unfetched"), 4999);
    assert_eq!(counted(&target, "get_expired"), 0);
    assert_eq!(
        target.exchange(b"get stays\r\n", usize::MAX, false),
        b"VALUE stays 0 1\r\nx\r\nEND\r\n"
    );
}

#[test]
fn cpu_times_have_microseconds() {
    let (_server, target) = embedded(IoMode::Events);
    let began = Instant::now();
    loop {
        let reply = target.exchange(b"stats\r\n", usize::MAX, false);
        let reply = String::from_utf8(reply).expect("text");
        let times = reply.lines().filter_map(|line| line.strip_prefix("STAT rusage_"));
        // Clock ticks of 10 ms would end in four zeros.
        if times.clone().count() == 2 && times.clone().any(|time| !time.ends_with("0000")) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{reply}");
    }
}

/// The names of memcached 1.6.45. Prometheus's memcached_exporter fails on any other.
#[test]
fn a_slab_class_has_the_rows_of_memcached() {
    const ROWS: [&str; 15] = [
        "chunk_size",
        "chunks_per_page",
        "total_pages",
        "total_chunks",
        "used_chunks",
        "free_chunks",
        "free_chunks_end",
        "get_hits",
        "cmd_set",
        "delete_hits",
        "incr_hits",
        "decr_hits",
        "cas_hits",
        "cas_badval",
        "touch_hits",
    ];
    let (_server, target) = embedded(IoMode::Events);
    let reply = target.exchange(b"set a 0 0 1\r\nx\r\nstats slabs\r\n", usize::MAX, false);
    let reply = String::from_utf8(reply).expect("text");
    let rows: Vec<&str> =
        reply.lines().filter_map(|line| line.strip_prefix("STAT 1:")?.split(' ').next()).collect();
    assert_eq!(rows, ROWS, "{reply}");
}
