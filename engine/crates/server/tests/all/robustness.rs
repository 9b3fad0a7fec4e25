//! The server under load, with misbehaving clients, and when it is stopped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cachemark_server::{Endpoint, IoMode, Session, Settings, State, start};

use crate::common::{ask, connect, serve, settings};

const NOW: u32 = 1_700_000_000;

#[test]
fn there_is_a_limit_of_connections() {
    for io in IoMode::available() {
        let (server, _) = serve(io);
        let mut open: Vec<TcpStream> = (0..64).map(|_| connect(&server)).collect();
        for stream in &mut open {
            ask(stream, b"version\r\n", 15);
        }
        let mut refused = String::new();
        connect(&server).read_to_string(&mut refused).expect("an end");
        assert_eq!(refused, "ERROR Too many open connections\r\n");
        ask(&mut open[0], b"version\r\n", 15);
    }
}

#[test]
fn memory_stays_within_its_limit_and_the_oldest_leave() {
    let (server, _) = serve(IoMode::Events);
    let mut stream = connect(&server);
    let value = "v".repeat(1000);
    for n in 0..20_000 {
        let set = format!("set key-{n} 0 0 1000 noreply\r\n{value}\r\n");
        stream.write_all(set.as_bytes()).expect("a server that reads");
    }
    let stats = String::from_utf8(ask(&mut stream, b"stats\r\nget key-0\r\n", 1)).expect("text");
    let mut rest = stats;
    while !rest.ends_with("END\r\nEND\r\n") {
        let mut chunk = [0; 4096];
        let bytes = stream.read(&mut chunk).expect("a server that answers");
        rest.push_str(&String::from_utf8_lossy(&chunk[..bytes]));
    }
    let stat = |name: &str| -> u64 {
        let line = rest.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.expect("a counter").parse().expect("a number")
    };
    assert!(stat("bytes") <= 8 << 20);
    assert_eq!(stat("curr_items") + stat("evictions"), 20_000);
    assert!(stat("curr_items") > 6000);
    let newest = ask(&mut stream, b"get key-19999\r\n", 6);
    assert_eq!(newest, b"VALUE ");
}

#[test]
fn a_stop_under_load_ends_everything() {
    for io in IoMode::available() {
        let path = std::env::temp_dir().join(format!("cachemark-{}-{io:?}", std::process::id()));
        let endpoints =
            [Endpoint::Tcp("127.0.0.1:0".to_owned()), Endpoint::Unix(PathBuf::from(&path))];
        let state = Arc::new(State::new(settings(io), "1.2.3"));
        let mut server = start(&endpoints, &state).expect("a server");
        let address = server.addresses[0].clone();
        let busy: Vec<_> = (0..4)
            .map(|_| {
                let mut stream = TcpStream::connect(&address).expect("a server");
                thread::spawn(move || {
                    let mut reply = [0; 15];
                    while stream.write_all(b"version\r\n").is_ok() {
                        if stream.read_exact(&mut reply).is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        let mut probe = TcpStream::connect(&address).expect("a server");
        ask(&mut probe, b"version\r\n", 15);
        server.stop();
        busy.into_iter().for_each(|client| client.join().expect("a client that ends"));
        assert!(TcpStream::connect(&address).is_err());
        assert!(!path.exists());
    }
}

#[test]
fn a_line_of_many_keys_is_answered_in_pieces() {
    let state = State::new(settings(IoMode::Events), "1.2.3");
    let (mut session, mut out) = (Session::default(), Vec::new());
    let mut set = b"set k 0 0 100000\r\n".to_vec();
    set.resize(set.len() + 100_000, b'v');
    set.extend_from_slice(b"\r\n");
    session.feed(&set, &state, NOW, &mut out);
    let request = [&b"get"[..], &b" k".repeat(1000), b"\r\nversion\r\n"].concat();
    let (mut rest, mut replied) = (&request[..], Vec::new());
    while !rest.is_empty() {
        out.clear();
        let fed = session.feed(rest, &state, NOW, &mut out);
        assert!(out.len() < 400_000, "a piece of {} bytes", out.len());
        assert!(fed.consumed > 0 || fed.paused);
        rest = &rest[fed.consumed..];
        replied.extend_from_slice(&out);
    }
    let value = [b"VALUE k 0 100000\r\n", &set[18..]].concat();
    assert!(replied == [&value.repeat(1000)[..], b"END\r\nVERSION 1.2.3\r\n"].concat());
}

#[test]
fn a_set_that_finds_no_room_leaves_nothing_stale() {
    let memory_bytes = 100_000;
    let state = State::new(Settings { memory_bytes, ..settings(IoMode::Events) }, "1.2.3");
    let large = [&b"set k 0 0 200000\r\n"[..], &[b'v'; 200_000], b"\r\n"].concat();
    let request = [b"set k 0 0 3\r\nold\r\n", &large[..], b"get k\r\n"].concat();
    let mut out = Vec::new();
    Session::default().feed(&request, &state, NOW, &mut out);
    let expected = "STORED\r\nSERVER_ERROR out of memory storing object\r\nEND\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn those_that_say_nothing_or_little_hurt_nobody() {
    for io in IoMode::available() {
        let (server, state) = serve(io);
        // Half a command, half a value, half a packet, nothing, a half-closed connection.
        let begun: [&[u8]; 4] = [b"get a", b"set a 0 0 100\r\nhalf", b"\x80\x00\x00\x05", b""];
        let mut silent: Vec<TcpStream> = (0..40).map(|_| connect(&server)).collect();
        for (stream, begun) in silent.iter_mut().zip(begun.iter().cycle()) {
            stream.write_all(begun).expect("a server that reads");
        }
        silent.iter().step_by(5).for_each(|stream| {
            stream.shutdown(std::net::Shutdown::Write).expect("a socket");
        });
        let mut other = connect(&server);
        assert_eq!(ask(&mut other, b"mn\r\n", 4), b"MN\r\n");
        // One byte at a time is slow, but valid.
        for byte in b"set k 0 0 3\r\nabc\r\nget k\r" {
            other.write_all(&[*byte]).expect("a server that reads");
        }
        let reply = b"STORED\r\nVALUE k 0 3\r\nabc\r\nEND\r\n";
        assert_eq!(ask(&mut other, b"\n", reply.len()), reply);
        drop(silent);
        wait_until(|| state.current_connections.load(std::sync::atomic::Ordering::Relaxed) == 1);
        assert_eq!(state.peers().len(), 1, "those who are gone are forgotten");
    }
}

fn wait_until(done: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "it takes too long");
        thread::yield_now();
    }
}

#[test]
fn resets_in_the_middle_of_replies_leave_nothing_behind() {
    for io in IoMode::available() {
        let (server, state) = serve(io);
        let mut set = b"set k 0 0 500000\r\n".to_vec();
        set.resize(set.len() + 500_000, b'v');
        set.extend_from_slice(b"\r\n");
        assert_eq!(ask(&mut connect(&server), &set, 8), b"STORED\r\n");
        for _ in 0..50 {
            let mut stream = connect(&server);
            stream.write_all(&b"get k\r\n".repeat(20)).expect("a server that reads");
            stream.read_exact(&mut [0; 100]).expect("a server that answers");
        }
        wait_until(|| state.current_connections.load(std::sync::atomic::Ordering::Relaxed) == 0);
        assert_eq!(ask(&mut connect(&server), b"mn\r\n", 4), b"MN\r\n");
    }
}
