//! The server as a process under pressure: stopped in the middle of work, and with more items than fit into
//! its memory.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Served};

const MODES: [&str; 4] = ["blocking", "events", "uring", "busy"];

/// Whether a read or a write failed because the peer is gone. Any other error means that the server hangs.
fn is_end(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Set and get, many requests at a time, until the server ends the connection.
fn keep_busy(mut stream: TcpStream, mut answered: impl FnMut()) -> ErrorKind {
    let set = [&b"set k 0 0 5000\r\n"[..], &[b'v'; 5000], b"\r\n"].concat();
    let requests = [&set[..], &b"get k\r\n".repeat(16)].concat();
    let value = [&b"VALUE k 0 5000\r\n"[..], &[b'v'; 5000], b"\r\nEND\r\n"].concat();
    let expected = [&b"STORED\r\n"[..], &value.repeat(16)].concat();
    let mut replies = vec![0; expected.len()];
    loop {
        let asked = stream.write_all(&requests).and_then(|()| stream.read_exact(&mut replies));
        if let Err(error) = asked {
            return error.kind();
        }
        assert!(replies == expected, "whole replies in their order");
        answered();
    }
}

#[test]
fn a_server_stopped_under_load_ends_cleanly_and_closes_connections() {
    for io in MODES {
        let mut served = Served::start(io, &[]);
        let (answered, at_work) = channel();
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (stream, answered) = (served.connect(), answered.clone());
                let tell = move || {
                    // The receiver is gone once all clients are at work.
                    let _ = answered.send(());
                };
                thread::spawn(move || keep_busy(stream, tell))
            })
            .collect();
        let mut silent = served.connect();
        silent.write_all(b"set k 0 0 100\r\nhalf").expect("a server that reads");
        for _ in 0..64 {
            at_work.recv_timeout(PATIENCE).expect("a server that answers");
        }
        // SAFETY: a signal to a child that is not reaped yet, so that the pid is still its own.
        assert_eq!(unsafe { libc::kill(served.pid() as libc::pid_t, libc::SIGTERM) }, 0);
        let signalled = Instant::now();
        let status = loop {
            match served.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => assert!(signalled.elapsed() < PATIENCE, "{io}: it does not end"),
            }
            thread::yield_now();
        };
        assert_eq!(status.code(), Some(0), "{io}");
        for client in clients {
            let kind = client.join().expect("a client that ends");
            assert!(is_end(kind), "{io}: {kind:?}");
        }
        let ended = silent.read(&mut [0; 8]).map_err(|error| error.kind());
        assert!(ended.is_ok_and(|bytes| bytes == 0) || ended.is_err_and(is_end), "{io}: {ended:?}");
    }
}

const WRITERS: usize = 24;
const SETS: usize = 12;
const VALUE_BYTES: usize = 600_000;
/// The memory that the server may use beside its items: for each writer the value that arrives, in a buffer that
/// doubles, and what any process needs.
const PEAK_KIB_MOST: u64 = (8 << 10) + WRITERS as u64 * 2 * 1024 + (40 << 10);

fn store_large(mut stream: TcpStream, writer: usize) {
    let value = vec![b'a' + writer as u8; VALUE_BYTES];
    for n in 0..SETS {
        let head = format!("set large-{writer}-{n} 0 0 {VALUE_BYTES}\r\n");
        let set = [head.as_bytes(), &value, b"\r\n"].concat();
        stream.write_all(&set).expect("a server that reads");
        let mut reply = [0; 8];
        stream.read_exact(&mut reply).expect("a server that answers");
        assert_eq!(&reply, b"STORED\r\n");
    }
}

/// Set and get small items: each request is answered, and a value is complete or gone.
fn use_small(stream: TcpStream, rounds: usize) {
    let mut stream = BufReader::new(stream);
    for n in 0..rounds {
        let asked = format!("set small-{n} 0 0 5\r\nvalue\r\nget small-{n}\r\n");
        stream.get_mut().write_all(asked.as_bytes()).expect("a server that reads");
        let mut reply = String::new();
        while !reply.ends_with("END\r\n") {
            let bytes = stream.read_line(&mut reply).expect("a server that answers");
            assert!(bytes > 0, "the server closed the connection: {reply}");
        }
        let there = format!("STORED\r\nVALUE small-{n} 0 5\r\nvalue\r\nEND\r\n");
        assert!(reply == there || reply == "STORED\r\nEND\r\n", "{reply}");
    }
}

/// `VmHWM` is the highest resident size, `VmRSS` the present one.
fn resident_kib(pid: u32, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let size = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':'));
    size.expect("a size").trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn many_large_items_stay_within_memory_and_disturb_no_client() {
    for io in MODES {
        let served = Served::start(io, &["--memory", "8m"]);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let stream = served.connect();
                scope.spawn(move || store_large(stream, writer));
            }
            let stream = served.connect();
            scope.spawn(move || use_small(stream, 200));
        });
        let written_kib = (WRITERS * SETS * VALUE_BYTES / 1024) as u64;
        let peak_kib = resident_kib(served.pid(), "VmHWM");
        assert!(PEAK_KIB_MOST < written_kib * 3 / 4, "the bound would mean nothing");
        assert!(peak_kib < PEAK_KIB_MOST, "{io}: {peak_kib} KiB at most");
        use_small(served.connect(), 10);
    }
}

const DEAF: usize = 300;
/// By then the server has filled the sockets of clients that do not read, and keeps replies for some of them.
const WRITTEN_BYTES: u64 = DEAF as u64 * 1_000_000;
const LEFT_KIB_MOST: u64 = 16 << 10;

/// How many bytes the server has written by its own count.
fn bytes_written(stream: &mut TcpStream) -> u64 {
    stream.write_all(b"stats\r\n").expect("a server that reads");
    let (mut stats, mut chunk) = (String::new(), [0; 8192]);
    while !stats.ends_with("END\r\n") {
        let bytes = stream.read(&mut chunk).expect("a server that answers");
        stats.push_str(std::str::from_utf8(&chunk[..bytes]).expect("text"));
    }
    let count = stats.lines().find_map(|line| line.strip_prefix("STAT bytes_written "));
    count.expect("a count").parse().expect("a number")
}

#[test]
fn clients_that_do_not_read_leave_no_memory_behind() {
    for io in MODES {
        let served = Served::start(io, &[]);
        let mut stream = served.connect();
        // Longer values are not copied for those who do not read.
        let set = [&b"set k 0 0 10000\r\n"[..], &[b'v'; 10_000], b"\r\n"].concat();
        stream.write_all(&set).expect("a server that reads");
        stream.read_exact(&mut [0; 8]).expect("a server that answers");
        let before_kib = resident_kib(served.pid(), "VmRSS");
        let mut deaf: Vec<TcpStream> = (0..DEAF).map(|_| served.connect()).collect();
        for stream in &mut deaf {
            stream.write_all(&b"get k\r\n".repeat(2000)).expect("a server that reads");
        }
        let wait_until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
            let began = Instant::now();
            while !is_so() {
                assert!(began.elapsed() < PATIENCE, "{io}: {what}");
                thread::yield_now();
            }
        };
        wait_until("sockets are full", &mut || bytes_written(&mut stream) > WRITTEN_BYTES);
        drop(deaf);
        wait_until("nothing is left", &mut || {
            resident_kib(served.pid(), "VmRSS").saturating_sub(before_kib) < LEFT_KIB_MOST
        });
    }
}

/// More than the replies that a connection may keep, and than the input that the kernel had received by then.
const PIPELINE_KIB_MOST: u64 = 8 << 10;

#[test]
fn a_long_pipeline_without_a_reader_takes_little_memory() {
    for io in MODES {
        let served = Served::start(io, &[]);
        let mut stream = served.connect();
        let set = [&b"set k 0 0 100\r\n"[..], &[b'v'; 100], b"\r\n"].concat();
        stream.write_all(&set).expect("a server that reads");
        stream.read_exact(&mut [0; 8]).expect("a server that answers");
        let before_kib = resident_kib(served.pid(), "VmRSS");
        stream.set_nonblocking(true).expect("a socket");
        let (gets, began) = (b"get k\r\n".repeat(8192), Instant::now());
        let (mut sent, mut progress) = (0, Instant::now());
        // Until nothing was taken for a while: the buffers of both sockets are full.
        while progress.elapsed() < Duration::from_millis(500) {
            if let Ok(bytes) = stream.write(&gets[sent % gets.len()..]) {
                sent += bytes;
                progress = Instant::now();
            }
            assert!(began.elapsed() < PATIENCE, "{io}: the server takes all that it is sent");
            thread::yield_now();
        }
        let more_kib = resident_kib(served.pid(), "VmHWM").saturating_sub(before_kib);
        assert!(more_kib < PIPELINE_KIB_MOST, "{io}: {more_kib} KiB for one connection");
        // It goes on once its replies are read.
        stream.set_nonblocking(false).expect("a socket");
        let mut reply = vec![0; b"VALUE k 0 100\r\n".len() + 102 + 5];
        for _ in 0..sent / 7 {
            stream.read_exact(&mut reply).expect("a server that answers");
            assert!(
                reply.starts_with(b"VALUE k 0 100\r\n") && reply.ends_with(b"v\r\nEND\r\n"),
                "{io}"
            );
        }
    }
}
