//! The proxy over real sockets: what a client sees of each fault, in each protocol, and what the log says.

mod common;
mod distance;
mod protocols;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{Ending, Proxied, ask, connect, filled, is_empty, read_to_end, serve};
use proptest::prelude::*;

#[test]
fn a_share_of_requests_fails_and_others_keep_their_order() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    proxied.fault(r#"{"kind": "server-error", "share": 0.5}"#);
    let hit = "VALUE a 0 5\r\nhello\r\nEND\r\n";
    let error = "SERVER_ERROR out of memory storing object\r\n";
    let requests = b"get a\r\nget b\r\nversion\r\nset a 0 0 1 noreply\r\nx\r\nget a\r\nset a 0 0 1\r\ny\r\nget a\r\n";
    let replies = format!(
        "{hit}{error}VERSION 1.2.3\r\nVALUE a 0 1\r\nx\r\nEND\r\n{error}VALUE a 0 1\r\nx\r\nEND\r\n"
    );
    let mut client = proxied.connect();
    let seen = ask(&mut client, requests, replies.len());
    assert_eq!(String::from_utf8_lossy(&seen), replies);
    proxied.fault("null");
    assert_eq!(
        ask(&mut client, b"get b\r\n", hit.len()),
        hit.replace("a 0", "b 0").replace("hello", "there").as_bytes()
    );
    proxied.end();
}

#[test]
fn what_a_black_hole_holds_back_comes_later() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    let (mut client, mut later) = (proxied.connect(), proxied.connect());
    let hit = b"VALUE a 0 5\r\nhello\r\nEND\r\n";
    assert_eq!(ask(&mut client, b"get a\r\n", hit.len()), hit);
    proxied.fault(r#"{"kind": "blackhole", "after_bytes": 4}"#);
    assert_eq!(ask(&mut client, b"get a\r\n", 4), b"VALU");
    later.write_all(b"get a\r\nget a\r\n").expect("it takes bytes");
    let mut few = [0; 4];
    later.read_exact(&mut few).expect("the first bytes");
    assert_eq!(
        proxied.command("{}"),
        Err("a command is an object with the field fault".to_owned())
    );
    assert!(is_empty(&client) && is_empty(&later));
    proxied.fault("null");
    assert_eq!(ask(&mut client, b"", hit.len() - 4), hit[4..]);
    assert_eq!(ask(&mut later, b"", 2 * hit.len() - 4), [&hit[4..], hit].concat());
    proxied.end();
}

#[test]
fn a_lost_reply_silences_its_connection_only() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    let (mut silent, mut other) = (proxied.connect(), proxied.connect());
    proxied.fault(r#"{"kind": "never-answers"}"#);
    silent.write_all(b"set a 0 0 2\r\nhi\r\n").expect("it takes bytes");
    // The request reaches the server, as another client sees.
    let mut direct = connect(upstream);
    let began = Instant::now();
    while ask(&mut direct, b"mg a s\r\n", 7) != *b"HD s2\r\n" {
        assert!(began.elapsed() < common::PATIENCE, "the request never came");
    }
    assert_eq!(ask(&mut direct, b"mg a s\r\n", 7), b"HD s2\r\n");
    while !std::fs::read_to_string(proxied.log_path()).expect("a log").contains("injected") {
        assert!(began.elapsed() < common::PATIENCE, "the reply never came");
    }
    proxied.fault("null");
    assert_eq!(ask(&mut other, b"get a\r\n", 21), b"VALUE a 0 2\r\nhi\r\nEND\r");
    silent.write_all(b"get a\r\n").expect("it takes bytes");
    assert_eq!(ask(&mut other, b"get a\r\n", 1), b"\n");
    assert!(is_empty(&silent));
    proxied.end();
}

#[test]
fn nothing_is_sent_too_early() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    let mut client = proxied.connect();
    for (fault, least_ms) in [
        (r#"{"kind": "delay", "delay_ms": 30}"#, 30),
        (r#"{"kind": "drip", "interval_us": 2000}"#, 2 * (25 - 1)),
    ] {
        proxied.fault(fault);
        let began = Instant::now();
        assert_eq!(ask(&mut client, b"get a\r\n", 25), b"VALUE a 0 5\r\nhello\r\nEND\r\n");
        assert!(began.elapsed() >= Duration::from_millis(least_ms), "{fault}");
    }
    proxied.end();
}

#[test]
fn connections_are_reset() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    for fault in [
        r#"{"kind": "reset"}"#,
        r#"{"kind": "refuse"}"#,
        r#"{"kind": "full-backlog"}"#,
        r#"{"kind": "too-many-connections"}"#,
    ] {
        proxied.fault("null");
        let mut client = proxied.connect();
        ask(&mut client, b"mn\r\n", 4);
        proxied.fault(fault);
        assert_eq!(read_to_end(&mut client), (Vec::new(), Ending::Reset), "{fault}");
    }
    proxied.fault(r#"{"kind": "too-many-connections", "reset_existing": false}"#);
    let full = (b"ERROR Too many open connections\r\n".to_vec(), Ending::Closed);
    assert_eq!(read_to_end(&mut proxied.connect()), full);
    proxied.fault(r#"{"kind": "reset", "new_too": true}"#);
    // The reset may come before the connection is used, or while it is made.
    if let Ok(mut client) = TcpStream::connect(proxied.address) {
        assert_eq!(read_to_end(&mut client).1, Ending::Reset);
    }
    proxied.fault(r#"{"kind": "idle-close", "idle_ms": 1}"#);
    assert_eq!(read_to_end(&mut proxied.connect()), (Vec::new(), Ending::Closed));
    proxied.fault("null");
    assert_eq!(ask(&mut proxied.connect(), b"mn\r\n", 4), b"MN\r\n");
    proxied.end();
}

#[test]
fn connections_are_refused_or_wait() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    for _ in 0..2 {
        proxied.fault(r#"{"kind": "refuse"}"#);
        let refused = TcpStream::connect(proxied.address).expect_err("no listener");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        proxied.fault(r#"{"kind": "full-backlog"}"#);
        let waits = TcpStream::connect_timeout(&proxied.address, Duration::from_millis(50));
        assert_eq!(waits.expect_err("the queue is full").kind(), ErrorKind::TimedOut);
        proxied.fault("null");
        assert_eq!(ask(&mut proxied.connect(), b"mn\r\n", 4), b"MN\r\n");
    }
    let log = proxied.end();
    assert_eq!(log.iter().filter(|line| line["event"] == "accepted").count(), 2);
}

#[test]
fn new_connections_reach_another_server() {
    let ((_one, upstream), (_two, other)) = (filled(), serve());
    let proxied = Proxied::start(upstream);
    let mut old = proxied.connect();
    ask(&mut old, b"mn\r\n", 4);
    proxied.fault(&format!(r#"{{"kind": "switch-upstream", "to": "{other}"}}"#));
    assert_eq!(ask(&mut proxied.connect(), b"get a\r\n", 5), b"END\r\n");
    assert_eq!(ask(&mut old, b"get a\r\n", 5), b"VALUE");
    proxied.fault("null");
    assert_eq!(ask(&mut proxied.connect(), b"get a\r\n", 5), b"VALUE");
    let log = proxied.end();
    let upstreams = log.iter().filter(|line| line["event"] == "accepted");
    let upstreams: Vec<_> = upstreams.map(|line| line["upstream"].clone()).collect();
    assert_eq!(upstreams, [upstream, other, upstream].map(|each| each.to_string()));
}

#[test]
fn the_log_has_every_connection_and_fault() {
    let (_server, upstream) = filled();
    let proxied = Proxied::start(upstream);
    let mut client = proxied.connect();
    ask(&mut client, b"get a\r\n", 25);
    client.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(read_to_end(&mut client), (Vec::new(), Ending::Closed));
    let began_ns = proxied.fault(r#"{"kind": "drip"}"#);
    let replaced_ns = proxied.fault(r#"{"kind": "reset"}"#);
    let log = proxied.end();
    let events: Vec<_> = log.iter().map(|line| line["event"].as_str().expect("a name")).collect();
    let faults = ["fault-started", "fault-ended", "fault-started", "end"];
    assert_eq!(events, [&["accepted", "closed"][..], &faults].concat());
    let closed = &log[1];
    assert_eq!((&closed["by"], &closed["request_bytes"]), (&"client".into(), &7.into()));
    assert_eq!(closed["reply_bytes"], 25);
    assert_eq!(log[3]["fault"], serde_json::json!({"kind": "drip"}));
    let times: Vec<_> = log.iter().map(|line| line["at_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted());
    assert!(times[1] <= began_ns && began_ns <= times[3] && times[3] <= replaced_ns);
}

#[test]
fn a_frozen_server_does_not_stop_the_proxy() {
    // It never accepts, and never reads.
    let frozen = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxied = Proxied::start(frozen.local_addr().expect("an address"));
    let mut client = proxied.connect();
    client.set_nonblocking(true).expect("a socket");
    let began = Instant::now();
    // The proxy stops reading when enough waits.
    while client.write(&[b'x'; 1 << 16]).is_ok() {
        assert!(began.elapsed() < common::PATIENCE, "it reads on for ever");
    }
    proxied.fault(r#"{"kind": "reset"}"#);
    client.set_nonblocking(false).expect("a socket");
    assert_eq!(read_to_end(&mut client), (Vec::new(), Ending::Reset));
    let nobody = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address")
    };
    proxied.fault(&format!(r#"{{"kind": "switch-upstream", "to": "{nobody}"}}"#));
    if let Ok(mut client) = TcpStream::connect(proxied.address) {
        assert_eq!(read_to_end(&mut client).1, Ending::Reset);
    }
    proxied.end();
}

#[test]
fn clients_above_the_limit_wait_until_another_has_gone() {
    let (_server, upstream) = filled();
    let proxied = Proxied::with_connections(upstream, 2);
    let (mut first, mut second) = (proxied.connect(), proxied.connect());
    for client in [&mut first, &mut second] {
        ask(client, b"mn\r\n", 4);
    }
    let mut third = proxied.connect();
    third.write_all(b"mn\r\n").expect("it takes bytes");
    ask(&mut first, b"mn\r\n", 4);
    assert!(is_empty(&third));
    drop(second);
    assert_eq!(ask(&mut third, b"", 4), b"MN\r\n");
    proxied.end();
}

/// A server that sends back what it gets.
fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.expect("a client");
                let mut buffer = [0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..bytes]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn any_bytes_pass_unchanged_without_a_fault() {
    let proxied = Proxied::start(echo());
    let pieces = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 1..8);
    // The other half looks like the protocols, so that frames are followed.
    let lines =
        proptest::collection::vec("(VALUE a 0 [0-9]{1,3}|set b 0 0 [0-9]{1,2}|END|VA 3)\r\n", 1..8);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop_oneof![
        pieces,
        lines.prop_map(|lines| lines.into_iter().map(String::into_bytes).collect())
    ];
    for _ in 0..40 {
        let tree = strategy.new_tree(&mut runner).expect("pieces");
        let pieces: Vec<Vec<u8>> = proptest::strategy::ValueTree::current(&tree);
        let mut client = proxied.connect();
        let all = pieces.concat();
        for piece in &pieces {
            client.write_all(piece).expect("it takes bytes");
        }
        assert_eq!(ask(&mut client, b"", all.len()), all);
        client.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(read_to_end(&mut client), (Vec::new(), Ending::Closed));
    }
    proxied.end();
}
