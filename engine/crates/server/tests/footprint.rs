//! Threads and memory of the server. Both are counted for the whole process, so that nothing else may run in it:
//! these tests have a file of their own and run one at a time.

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cachemark_server::IoMode;
use common::{ask, connect, serve};

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
        assert!(state.total_connections.load(std::sync::atomic::Ordering::Relaxed) >= 2);
    }
}
