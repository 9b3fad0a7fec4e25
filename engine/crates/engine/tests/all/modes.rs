//! The I/O modes, seen from outside: a server's threads, its open files, and the system calls in which its
//! threads wait.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use crate::common::{PATIENCE, Served};

const CONNECTIONS: usize = 20;

/// A server with connections that have sent a request.
fn served(io: &str) -> (Served, Vec<TcpStream>) {
    let served = Served::start(io, &[]);
    let streams = (0..CONNECTIONS).map(|_| {
        let mut stream = served.connect();
        stream.write_all(b"mn\r\n").expect("a server that reads");
        stream.read_exact(&mut [0; 4]).expect("a server that answers");
        stream
    });
    let streams = streams.collect();
    (served, streams)
}

/// The names of a process's threads, and the numbers of the system calls in which they wait.
fn threads(pid: u32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let read =
        |path: &std::path::Path, name| fs::read_to_string(path.join(name)).unwrap_or_default();
    let tasks = tasks.map(|task| {
        let path = task.expect("a thread").path();
        let call = read(&path, "syscall").split_whitespace().next().unwrap_or_default().to_owned();
        (read(&path, "comm").trim().to_owned(), call)
    });
    tasks.collect()
}

/// The kinds of files that a process has open.
fn open_files(pid: u32) -> BTreeSet<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
    let links = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// The system calls in which the threads with this name wait, once they all wait.
fn waits_in(pid: u32, name: &str) -> BTreeSet<String> {
    let began = Instant::now();
    loop {
        let calls: BTreeSet<String> = threads(pid)
            .into_iter()
            .filter(|(comm, _)| comm.starts_with(name))
            .map(|(_, call)| call)
            .collect();
        if !calls.contains("running") || began.elapsed() > PATIENCE {
            return calls;
        }
        thread::yield_now();
    }
}

fn count(pid: u32, name: &str) -> usize {
    threads(pid).iter().filter(|(comm, _)| comm.starts_with(name)).count()
}

fn calls(numbers: &[libc::c_long]) -> BTreeSet<String> {
    numbers.iter().map(libc::c_long::to_string).collect()
}

#[test]
fn blocking_io_has_a_thread_for_each_connection() {
    let (served, _streams) = served("blocking");
    let pid = served.pid();
    assert!(served.announcement.contains(r#""io":"blocking""#), "{}", served.announcement);
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (CONNECTIONS, 0));
    assert!(!open_files(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "connection").is_subset(&calls(&[libc::SYS_read, libc::SYS_recvfrom])));
}

#[test]
fn events_are_loops_on_epoll() {
    let (served, _streams) = served("events");
    let pid = served.pid();
    assert!(served.announcement.contains(r#""io":"events""#), "{}", served.announcement);
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    assert!(open_files(pid).contains("anon_inode:[eventpoll]"));
    assert!(!open_files(pid).contains("anon_inode:[io_uring]"));
    assert!(waits_in(pid, "loop").is_subset(&epoll_waits()));
}

/// The CPU time of a server's event loops so far, in ns.
fn loops_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let paths = tasks.map(|task| task.expect("a thread").path());
    let loops = paths.filter(|path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.starts_with("loop"))
    });
    let took = loops.map(|path| {
        let times = fs::read_to_string(path.join("schedstat")).expect("a thread's times");
        times.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).expect("a number")
    });
    took.sum()
}

/// A busy loop polls epoll before it sleeps, and sleeps in the end.
#[test]
fn busy_loops_poll_before_they_sleep() {
    let took = ["events", "busy"].map(|io| {
        let (served, mut streams) = served(io);
        let pid = served.pid();
        assert!(
            served.announcement.contains(&format!(r#""io":"{io}""#)),
            "{}",
            served.announcement
        );
        assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
        assert!(open_files(pid).contains("anon_inode:[eventpoll]"));
        let before = loops_ns(pid);
        for n in 0..5 * CONNECTIONS {
            let stream = &mut streams[n % CONNECTIONS];
            // All loops sleep now: each request wakes one.
            assert!(waits_in(pid, "loop").is_subset(&epoll_waits()));
            stream.write_all(b"mn\r\n").expect("a server that reads");
            stream.read_exact(&mut [0; 4]).expect("a server that answers");
        }
        assert!(waits_in(pid, "loop").is_subset(&epoll_waits()));
        loops_ns(pid) - before
    });
    assert!(took[1] > 2 * took[0], "{took:?} ns");
}

fn epoll_waits() -> BTreeSet<String> {
    calls(&[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, EPOLL_WAIT])
}

#[cfg(target_arch = "x86_64")]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_pwait;

/// If the kernel has no io_uring, the server says so and uses epoll.
#[test]
fn uring_has_loops_on_rings() {
    let (served, _streams) = served("uring");
    let pid = served.pid();
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    if served.announcement.contains(r#""io":"events""#) {
        assert!(open_files(pid).contains("anon_inode:[eventpoll]"));
        return;
    }
    assert!(served.announcement.contains(r#""io":"uring""#), "{}", served.announcement);
    assert!(open_files(pid).contains("anon_inode:[io_uring]"));
    assert!(!open_files(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "loop").is_subset(&calls(&[libc::SYS_io_uring_enter])));
}
