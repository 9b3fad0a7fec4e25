//! A server shows its state: `watch`, `stats`, dumps, and the connections that it closes by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cachemark_server::{Accounts, Endpoint, IoMode, Settings, State, start};

use crate::targets::{Target, VERSION, embedded, memcached_with, serving, settings};

const PATIENCE: Duration = Duration::from_secs(60);

fn line(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a server that writes");
    line
}

/// A client that watches these kinds of events.
fn watcher(target: &Target, kinds: &str) -> BufReader<TcpStream> {
    let mut stream = target.connect();
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(format!("watch {kinds}\r\n").as_bytes()).expect("a server that reads");
    let mut reader = BufReader::new(stream);
    assert_eq!(line(&mut reader), "OK\r\n");
    reader
}

/// A log line without what differs from run to run: the time, the count of lines, and the socket.
fn settled(line: &str) -> String {
    let words = line.trim_end().split(' ');
    let changes = ["ts=", "gid=", "cfd=", "clsid=", "rport=", "la="];
    let kept = words.filter(|word| !changes.iter().any(|name| word.starts_with(name)));
    kept.collect::<Vec<_>>().join(" ")
}

/// Requests, and the lines that a watcher of fetchers, mutations and deletions then gets.
const WATCHED: &str = "get none\r\nset k 0 0 4\r\nabcd\r\nget k\r\nadd k 0 9 1\r\nx\r\n\
    append k 0 0 1\r\ne\r\ndelete k\r\nms m#1 2 T90\r\nhi\r\nmg m#1 v\r\nmd m#1\r\nmd m#1\r\nversion\r\n";

const LINES: [&str; 16] = [
    "type=item_get key=none status=not_found size=0",
    "type=item_get key=k status=not_found size=0",
    "type=item_store key=k status=stored cmd=set ttl=0 size=4",
    "type=item_get key=k status=found size=4",
    "type=item_get key=k status=found size=4",
    "type=item_store key=k status=not_stored cmd=add ttl=9 size=1",
    "type=item_get key=k status=found size=4",
    "type=item_store key=k status=stored cmd=append ttl=0 size=5",
    "type=item_get key=k status=found size=5",
    "type=deleted key=k cmd=delete size=5",
    "type=item_get key=m%231 status=not_found size=0",
    "type=item_store key=m%231 status=stored cmd=set ttl=90 size=2",
    "type=item_get key=m%231 status=found size=2",
    "type=item_get key=m%231 status=found size=2",
    "type=deleted key=m%231 cmd=md size=2",
    "type=item_get key=m%231 status=not_found size=0",
];

#[test]
fn watchers_are_told_what_clients_do() {
    for io in IoMode::available() {
        let (server, target) = embedded(io);
        let mut all = watcher(&target, "fetchers mutations deletions");
        let mut deletions = watcher(&target, "deletions");
        target.exchange(WATCHED.as_bytes(), usize::MAX, false);
        for expected in LINES {
            assert_eq!(settled(&line(&mut all)), expected, "{io:?}");
        }
        for expected in LINES.iter().filter(|line| line.contains("type=deleted")) {
            assert_eq!(&settled(&line(&mut deletions)), expected, "{io:?}");
        }
        drop((all, deletions));
        wait_for(&target, "log_watchers", "0");
        drop(server);
    }
}

/// Its older versions do not know `deletions`.
#[test]
fn memcached_tells_its_watchers_the_same() {
    let (_memcached, target) = memcached_with(&[]);
    let mut watching = watcher(&target, "fetchers mutations");
    target.exchange(WATCHED.as_bytes(), usize::MAX, false);
    for expected in LINES.iter().filter(|line| !line.contains("type=deleted")) {
        assert_eq!(&settled(&line(&mut watching)), expected);
    }
}

/// Requests that change items in other ways, and the lines of a watcher of mutations.
const CHANGES: &str = "ma c N0 J77\r\nset a 0 90 1\r\nx\r\nappend a 0 0 1\r\ny\r\n\
    ms a 1 MP\r\nz\r\nms a 1 C1\r\nx\r\nversion\r\n";
const CHANGED: [&str; 5] = [
    "type=item_store key=c status=stored cmd=add ttl=0 size=2",
    "type=item_store key=a status=stored cmd=set ttl=90 size=1",
    "type=item_store key=a status=stored cmd=append ttl=90 size=2",
    "type=item_store key=a status=stored cmd=prepend ttl=90 size=3",
    "type=item_store key=a status=exists cmd=cas ttl=0 size=1",
];

#[test]
fn watchers_are_told_of_every_change() {
    let (_memcached, judge) = memcached_with(&[]);
    let servers: Vec<_> = IoMode::available().map(embedded).collect();
    for target in servers.iter().map(|(_, target)| target).chain([&judge]) {
        let mut watching = watcher(target, "mutations");
        target.exchange(CHANGES.as_bytes(), usize::MAX, false);
        for expected in CHANGED {
            // A second may have passed.
            let told = settled(&line(&mut watching)).replace("ttl=89", "ttl=90");
            assert_eq!(told, expected, "{}", target.address);
        }
    }
}

#[test]
fn a_removed_value_is_a_change_and_a_deletion() {
    let (_server, target) = embedded(IoMode::Events);
    let mut watching = watcher(&target, "mutations deletions");
    target.exchange(b"ms a 1\r\nx\r\nmd a x T90\r\n", usize::MAX, false);
    for expected in [
        "type=item_store key=a status=stored cmd=set ttl=0 size=1",
        "type=item_store key=a status=stored cmd=set ttl=90 size=0",
        "type=deleted key=a cmd=md size=0",
    ] {
        assert_eq!(settled(&line(&mut watching)).replace("ttl=89", "ttl=90"), expected);
    }
}

#[test]
fn watchers_are_told_of_connections_and_evictions() {
    for io in IoMode::available() {
        let state = State::new(Settings { memory_bytes: 1 << 20, ..settings(io) }, VERSION);
        let (_server, target) = serving(state);
        let mut connections = watcher(&target, "connevents");
        for (request, reason) in [("quit\r\n", "normal"), ("GET / HTTP/1.1\r\n", "error")] {
            target.exchange(request.as_bytes(), usize::MAX, true);
            let began = line(&mut connections);
            assert!(began.contains("type=conn_new rip=127.0.0.1 rport="), "{io:?} {began}");
            assert!(began.contains(" transport=tcp cfd="), "{io:?} {began}");
            let ended = line(&mut connections);
            let expected = format!(" transport=tcp reason={reason} cfd=");
            assert!(ended.contains("type=conn_close rip=127.0.0.1 rport="), "{io:?} {ended}");
            assert!(ended.contains(&expected), "{io:?} {request:?} {ended}");
        }
        let mut evictions = watcher(&target, "evictions");
        let value = "v".repeat(10_000);
        let sets: String =
            (0..300).map(|n| format!("set e{n} 0 0 10000 noreply\r\n{value}\r\n")).collect();
        target.exchange(sets.as_bytes(), usize::MAX, false);
        let evicted = settled(&line(&mut evictions));
        assert!(evicted.starts_with("type=eviction key=e"), "{io:?} {evicted}");
        assert!(evicted.ends_with(" fetch=no ttl=-1 size=10000"), "{io:?} {evicted}");
    }
}

fn stats(target: &Target, topic: &str) -> Vec<(String, String)> {
    let reply = target.exchange(format!("stats {topic}\r\n").as_bytes(), usize::MAX, false);
    let rows = String::from_utf8_lossy(&reply).into_owned();
    let rows = rows.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '));
    rows.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Wait until a counter has this value.
fn wait_for(target: &Target, name: &str, value: &str) {
    let began = Instant::now();
    let wanted = (name.to_owned(), value.to_owned());
    while !stats(target, "").contains(&wanted) {
        assert!(began.elapsed() < PATIENCE, "{name} never is {value}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Names that 1.6.45 has no more, or only if it is built with its proxy.
const LEFT_OUT: [&str; 3] =
    ["slab_reassign_evictions_nomem", "proxy_enabled", "proxy_uring_enabled"];

#[test]
fn every_name_of_memcached_is_there() {
    let (_memcached, judge) = memcached_with(&[]);
    let (_server, ours) = embedded(IoMode::Events);
    for target in [&judge, &ours] {
        target.exchange(b"set a 0 0 1\r\nx\r\n", usize::MAX, false);
    }
    for topic in ["", "settings", "items", "slabs", "sizes"] {
        let known: Vec<String> = stats(&ours, topic).into_iter().map(|(name, _)| name).collect();
        let missing: Vec<String> = stats(&judge, topic)
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| !known.contains(name) && !LEFT_OUT.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "stats {topic}: {missing:?}");
    }
}

#[test]
fn connections_are_listed_with_what_they_do() {
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        let mut half = target.connect();
        half.write_all(b"mn\r\nset a 0 0 5\r\nx").expect("a server that reads");
        half.read_exact(&mut [0; 4]).expect("a server that answers");
        let _watcher = watcher(&target, "");
        let began = Instant::now();
        loop {
            let mut states: Vec<String> = stats(&target, "conns")
                .into_iter()
                .filter_map(|(name, value)| name.ends_with(":state").then_some(value))
                .collect();
            states.sort();
            // A connection that has just ended may still be listed.
            states.retain(|state| state != "conn_read");
            if states == ["conn_listening", "conn_nread", "conn_parse_cmd", "conn_watch"] {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{io:?} {states:?}");
        }
    }
}

#[test]
fn idle_connections_are_closed() {
    for io in IoMode::available() {
        let state = State::new(Settings { idle_timeout_s: 1000, ..settings(io) }, VERSION);
        let state = Arc::new(state);
        let endpoints = [Endpoint::Tcp("127.0.0.1:0".to_owned())];
        let server = start(&endpoints, &state).expect("a server");
        let mut stream = TcpStream::connect(&server.addresses[0]).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(b"mn\r\n").expect("a server that reads");
        stream.read_exact(&mut [0; 4]).expect("a server that answers");
        state.clock.advance(1002);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("an end");
        assert!(rest.is_empty(), "{io:?}");
        let target = Target::embedded(server.addresses[0].clone());
        wait_for(&target, "idle_kicks", "1");
    }
}

#[test]
fn users_can_be_replaced() {
    let accounts = |text| Accounts::parse(text).expect("accounts");
    let state = State::new(settings(IoMode::Events), VERSION).with_accounts(accounts("ann:old\n"));
    let state = Arc::new(state);
    let endpoints = [Endpoint::Tcp("127.0.0.1:0".to_owned())];
    let server = start(&endpoints, &state).expect("a server");
    let target = Target::embedded(server.addresses[0].clone());
    let log_in = |user: &str| {
        let request = format!("set x 0 0 {}\r\n{user}\r\n", user.len());
        let reply = target.exchange(request.as_bytes(), usize::MAX, false);
        String::from_utf8_lossy(&reply).into_owned()
    };
    const REFUSED: &str = "CLIENT_ERROR authentication failure\r\n";
    assert_eq!([log_in("ann old"), log_in("ann new")], ["STORED\r\n", REFUSED]);
    state.replace_accounts(accounts("ann:new\n"));
    assert_eq!([log_in("ann old"), log_in("ann new")], [REFUSED, "STORED\r\n"]);
}

/// A page in a browser can make it send any bytes behind such a line, a login too.
#[test]
fn a_login_in_a_web_request_is_none() {
    let accounts = Accounts::parse("ann:s3c\n").expect("accounts");
    let (_server, target) =
        serving(State::new(settings(IoMode::Events), VERSION).with_accounts(accounts));
    for method in ["POST /", "PUT /a", "GET /", "HEAD x", "POST http://x/"] {
        let request =
            format!("{method} HTTP/1.1\r\nset x 0 0 7\r\nann s3c\r\nset a 0 0 1\r\nx\r\n");
        assert_eq!(target.exchange(request.as_bytes(), usize::MAX, false), b"", "{method}");
    }
    let login = b"set x 0 0 7\r\nann s3c\r\nget a\r\n";
    assert_eq!(target.exchange(login, usize::MAX, false), b"STORED\r\nEND\r\n");
}

/// `OK` before a dump is new in memcached's later versions.
#[test]
fn dumps_begin_with_ok() {
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        let dump = |request: &str| {
            let reply = target.exchange(format!("{request}\r\n").as_bytes(), usize::MAX, false);
            String::from_utf8_lossy(&reply).into_owned()
        };
        assert_eq!(dump("lru_crawler metadump all"), "OK\r\nEND\r\n");
        assert_eq!(dump("lru_crawler mgdump hash"), "OK\r\nEN\r\n");
        target.exchange(b"set a 5 0 1\r\nx\r\nms YSBi 1 b\r\nx\r\n", usize::MAX, false);
        assert_eq!(dump("lru_crawler metadump 2,3"), "OK\r\nEND\r\n");
        let mut lines: Vec<String> =
            dump("lru_crawler mgdump all").split_inclusive("\r\n").map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["EN\r\n", "OK\r\n", "mg YSBi b\r\n", "mg a\r\n"]);
        let details = dump("lru_crawler metadump all");
        assert!(details.contains("key=a exp=-1 la="), "{details}");
        assert!(details.contains(" fetch=no cls=1 size=65 flags=5 \n"), "{details}");
        let switched =
            dump("lru_crawler disable\r\nlru_crawler metadump all\r\nlru_crawler enable");
        assert_eq!(switched, "OK\r\nCLIENT_ERROR lru crawler disabled\r\nOK\r\n");
    }
}
