//! What each command adds to the counters of `stats`, beside the real memcached.

use std::collections::BTreeMap;

use cachemark_properties::cases::packet;
use cachemark_server::IoMode;

use crate::targets::{Target, embedded, memcached_with};

const TEXT: [&str; 78] = [
    "set a 7 100 9\r\n123456789\r\n",
    "set gone 0 -1 1\r\nx\r\n",
    "get gone\r\n",
    "set a 0 0 1\r\nx\r\n",
    "set n 0 0 1\r\n5\r\n",
    "get a\r\n",
    "get a none n\r\n",
    "gets a none\r\n",
    "incr n 5\r\n",
    "decr n 5\r\n",
    "incr none 1\r\n",
    "decr none 1\r\n",
    "incr a 1\r\n",
    "incr n x\r\n",
    "add a 0 0 1\r\nx\r\n",
    "add w 0 0 1\r\nx\r\n",
    "replace a 0 0 1\r\nx\r\n",
    "replace none 0 0 1\r\nx\r\n",
    "append a 0 0 1\r\nx\r\n",
    "append none 0 0 1\r\nx\r\n",
    "prepend a 0 0 1\r\nx\r\n",
    "prepend none 0 0 1\r\nx\r\n",
    "cas a 0 0 1 {cas}\r\nx\r\n",
    "cas a 0 0 1 1\r\nx\r\n",
    "cas none 0 0 1 1\r\nx\r\n",
    "delete w\r\n",
    "delete none\r\n",
    "touch a 100\r\n",
    "touch none 100\r\n",
    "gat 100 a\r\n",
    "gats 0 a none n\r\n",
    "mg a\r\n",
    "mg a v\r\n",
    "mg none v\r\n",
    "mg a t\r\n",
    "mg a v T60\r\n",
    "mg none v T60\r\n",
    "mg new v N30\r\n",
    "mg new v N30\r\n",
    "mg a v R90\r\n",
    "mg a h l t f s\r\n",
    "mg a v u\r\n",
    "ms m 1\r\nx\r\n",
    "ms m 1 ME\r\nx\r\n",
    "ms m2 1 ME\r\nx\r\n",
    "ms m 1 MR\r\nx\r\n",
    "ms none 1 MR\r\nx\r\n",
    "ms m 1 MA\r\nx\r\n",
    "ms none 1 MA\r\nx\r\n",
    "ms m 1 MP\r\nx\r\n",
    "ms a 1 C{cas}\r\nx\r\n",
    "ms a 1 C1\r\nx\r\n",
    "ms none 1 C1\r\nx\r\n",
    "ms a 1 C1 I\r\nx\r\n",
    "mg a v\r\n",
    "mg a v\r\n",
    "md m C1\r\n",
    "md m I T30\r\n",
    "mg m v\r\n",
    "mg m v\r\n",
    "md m\r\n",
    "md none\r\n",
    "ma n\r\n",
    "ma n v\r\n",
    "ma n MD\r\n",
    "ma none\r\n",
    "ma none MD\r\n",
    "ma auto N0 J7\r\n",
    "ma auto N0 J7\r\n",
    "ma n C1\r\n",
    "ma n T60\r\n",
    "me a\r\n",
    "me none\r\n",
    "mn\r\n",
    "bogus\r\n",
    "get\r\n",
    "verbosity 0\r\n",
    "flush_all 1000\r\n",
];

/// What a binary request has: the operation, the cas number, the extras, the key and the value.
type Packet = (u8, u64, &'static [u8], &'static str, &'static [u8]);

const SET: &[u8] = &[0; 8];
const TOUCH: &[u8] = &[0, 0, 0, 100];
/// Add 1, or create the number 5.
const CREATE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0];
const COUNT: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 255, 255, 255, 255];

const BINARY: [Packet; 32] = [
    (0x01, 0, SET, "b", b"v"),
    (0x01, 9, SET, "b", b"v"),
    (0x01, 9, SET, "none", b"v"),
    (0x00, 0, b"", "b", b""),
    (0x00, 0, b"", "none", b""),
    (0x0c, 0, b"", "b", b""),
    (0x0c, 0, b"", "none", b""),
    (0x09, 0, b"", "none", b""),
    (0x02, 0, SET, "b", b"1"),
    (0x02, 0, SET, "b2", b"1"),
    (0x03, 0, SET, "b2", b"1"),
    (0x03, 0, SET, "none", b"1"),
    (0x0e, 0, b"", "b2", b"1"),
    (0x0e, 0, b"", "none", b"1"),
    (0x0f, 0, b"", "b2", b"1"),
    (0x05, 0, CREATE, "b2", b""),
    (0x06, 0, CREATE, "b2", b""),
    (0x05, 0, CREATE, "c1", b""),
    (0x06, 0, CREATE, "c2", b""),
    (0x05, 0, COUNT, "none", b""),
    (0x06, 0, COUNT, "none", b""),
    (0x05, 3, CREATE, "c2", b""),
    (0x05, 0, CREATE, "b", b""),
    (0x1c, 0, TOUCH, "b", b""),
    (0x1c, 0, TOUCH, "none", b""),
    (0x1d, 0, TOUCH, "b", b""),
    (0x1d, 0, TOUCH, "none", b""),
    (0x04, 3, b"", "b", b""),
    (0x04, 0, b"", "b", b""),
    (0x04, 0, b"", "none", b""),
    (0x0a, 0, b"", "", b""),
    (0x0b, 0, b"", "", b""),
];

/// What no command changes by a fixed number, and what this server has not.
const OTHERS: [&str; 11] = [
    "bytes",
    "connection",
    "idle_polls",
    "lru_",
    "moves_",
    "pid",
    "read_buf",
    "response_",
    "rusage",
    "slab",
    "time",
];

fn replied(target: &Target, request: &[u8]) -> String {
    String::from_utf8_lossy(&target.exchange(request, usize::MAX, false)).into_owned()
}

/// The numbers in the reply to a command of statistics.
fn numbers(target: &Target, command: &str) -> BTreeMap<String, i64> {
    let reply = replied(target, format!("{command}\r\n").as_bytes());
    let row = |line: &str| {
        let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    reply.lines().filter_map(row).collect()
}

/// What each request adds to the counters.
fn added(target: &Target) -> Vec<String> {
    let text = TEXT.iter().map(|text| (*text, text.as_bytes().to_vec()));
    let binary = BINARY.iter().map(|(op, cas, extras, key, value)| {
        (*key, packet(0x80, *op, 0, 0, *cas, [extras, key.as_bytes(), value]))
    });
    let mut before = numbers(target, "stats");
    let mut found = Vec::new();
    for (n, (name, mut request)) in text.chain(binary).enumerate() {
        if name.contains("{cas}") {
            let a = replied(target, b"gets a\r\n");
            let cas = a.split_whitespace().nth(4).expect("a cas number").to_owned();
            request = name.replace("{cas}", &cas).into_bytes();
            before = numbers(target, "stats");
        }
        replied(target, &request);
        let after = numbers(target, "stats");
        let is_counted = |name: &str| {
            !OTHERS.iter().any(|other| name.contains(other)) && before.contains_key(name)
        };
        let more: Vec<String> = after
            .iter()
            .filter(|(name, number)| is_counted(name) && **number != before[*name])
            .map(|(name, number)| format!("{name} {:+}", number - before[name]))
            .collect();
        found.push(format!("{n} {name:?}: {}", more.join(", ")));
        before = after;
    }
    found
}

#[test]
fn each_command_counts_as_in_memcached() {
    // Its threads would remove items meanwhile.
    let (_memcached, memcached) = memcached_with(&["-o", "no_lru_crawler,no_lru_maintainer"]);
    let expected = added(&memcached);
    assert!(expected.iter().filter(|line| line.contains('+')).count() > 90, "{expected:#?}");
    let bytes = numbers(&memcached, "stats")["bytes"];
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        for (ours, expected) in added(&target).iter().zip(&expected) {
            assert_eq!(ours, expected, "{io:?}");
        }
        // What memcached's `bytes` would be; its own are those that items take here.
        let items = numbers(&target, "stats items");
        let requested = items.iter().filter(|(name, _)| name.ends_with(":mem_requested"));
        assert_eq!(requested.map(|(_, bytes)| bytes).sum::<i64>(), bytes, "{io:?}");
        assert!(numbers(&target, "stats")["bytes"] < bytes, "{io:?}");
    }
}
