//! Threads and memory of the server. Both are counted for the whole process, so that nothing else may run in it:
//! these tests are a program of their own and run one at a time.

#[path = "all/common.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cachemark_server::{Endpoint, IoMode, Settings, State, start};
use common::{ask, connect, serve, settings};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Each test holds this lock while it runs.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux").count()
}

#[test]
fn the_modes_are_really_different() {
    let _alone = alone();
    let grown = |io| {
        let (server, _) = serve(io);
        let before = threads();
        let mut streams: Vec<TcpStream> = (0..40).map(|_| connect(&server)).collect();
        for stream in &mut streams {
            ask(stream, b"version\r\n", 15);
        }
        threads() as i64 - before as i64
    };
    // Not exactly 40 and 0: threads of the previous test may still be ending.
    assert!(grown(IoMode::Blocking) >= 30);
    for io in IoMode::available().filter(|io| *io != IoMode::Blocking) {
        assert!(grown(io) < 30, "{io:?}");
    }
}

#[test]
fn one_that_does_not_read_hurts_nobody() {
    let _alone = alone();
    for io in IoMode::available() {
        let (server, state) = serve(io);
        let mut deaf = connect(&server);
        let value = vec![b'v'; 100_000];
        let mut set = b"set k 0 0 100000\r\n".to_vec();
        set.extend_from_slice(&value);
        set.extend_from_slice(b"\r\n");
        assert_eq!(ask(&mut deaf, &set, 8), b"STORED\r\n");
        // Request 200 MB of replies and never read them.
        deaf.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket");
        for _ in 0..2000 {
            if deaf.write_all(b"get k\r\n").is_err() {
                break;
            }
        }
        let mut other = connect(&server);
        assert_eq!(ask(&mut other, b"version\r\n", 15), b"VERSION 1.2.3\r\n");
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kib: u64 = rss.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kib < 400 << 10, "the replies must not pile up in memory: {kib} KiB");
        drop(deaf);
        assert!(state.total_connections.load(Ordering::Relaxed) >= 2);
    }
}

/// The bytes that memcached 1.6 allocates for a connection that waits: its structure of 600 bytes, in glibc's
/// steps, and the room for its number in tables.
const IDLE_BYTES_MAX: i64 = 640;

#[test]
fn an_idle_connection_takes_less_than_one_of_memcached() {
    const CONNECTIONS: usize = 300;
    let _alone = alone();
    for io in IoMode::available().filter(|io| *io != IoMode::Blocking) {
        let settings = Settings { max_connections: 1024, ..settings(io) };
        let state = Arc::new(State::new(settings, "1.2.3"));
        let server = start(&[Endpoint::Tcp("127.0.0.1:0".to_owned())], &state).expect("a server");
        let store = |stream: &mut TcpStream| {
            let mut set = b"set k 0 0 50000\r\n".to_vec();
            set.resize(set.len() + 50_000, b'v');
            set.extend_from_slice(b"\r\n");
            assert_eq!(ask(stream, &set, 8), b"STORED\r\n");
            ask(stream, b"get k\r\n", "VALUE k 0 50000\r\n\r\nEND\r\n".len() + 50_000);
        };
        let mut streams: Vec<TcpStream> = Vec::with_capacity(2 * CONNECTIONS);
        let more = |streams: &mut Vec<TcpStream>| {
            for _ in 0..CONNECTIONS {
                let mut stream = connect(&server);
                store(&mut stream);
                streams.push(stream);
            }
        };
        // Tables grow with the first connections; what threads share is there after them.
        more(&mut streams);
        let before = ALLOCATED.load(Ordering::Relaxed);
        more(&mut streams);
        let each = (ALLOCATED.load(Ordering::Relaxed) - before) / CONNECTIONS as i64;
        assert!((1..=IDLE_BYTES_MAX).contains(&each), "{io:?}: {each} bytes a connection");
    }
}

#[test]
fn a_thread_with_short_requests_has_short_buffers() {
    const CONNECTIONS: usize = 20;
    let _alone = alone();
    let (server, _) = serve(IoMode::Blocking);
    let use_one = || {
        let mut stream = connect(&server);
        assert_eq!(ask(&mut stream, b"set k 0 0 1\r\nx\r\n", 8), b"STORED\r\n");
        stream
    };
    let first = use_one();
    let before = ALLOCATED.load(Ordering::Relaxed);
    let more: Vec<TcpStream> = (0..CONNECTIONS).map(|_| use_one()).collect();
    let each = (ALLOCATED.load(Ordering::Relaxed) - before) / CONNECTIONS as i64;
    assert!(each < 4096, "{each} bytes a connection");
    drop((first, more));
}
