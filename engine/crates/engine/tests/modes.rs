//! The ways of I/O, seen from outside: a server's threads, what it holds open, and the system call that
//! it waits in.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use common::{PATIENCE, Served};

const CONNECTIONS: usize = 20;

/// A server with some connections that have said something.
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

/// The names of its threads, and the numbers of the system calls they wait in.
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

fn holds(pid: u32) -> BTreeSet<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
    let links = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// The calls that all threads of such a name wait in, once none of them runs.
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
fn blocking_is_a_thread_for_each_connection() {
    let (served, _streams) = served("blocking");
    let pid = served.pid();
    assert!(served.said.contains(r#""io":"blocking""#), "{}", served.said);
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (CONNECTIONS, 0));
    assert!(!holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "connection").is_subset(&calls(&[libc::SYS_read, libc::SYS_recvfrom])));
}

#[test]
fn events_are_loops_over_epoll() {
    let (served, _streams) = served("events");
    let pid = served.pid();
    assert!(served.said.contains(r#""io":"events""#), "{}", served.said);
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    assert!(holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(!holds(pid).contains("anon_inode:[io_uring]"));
    assert!(waits_in(pid, "loop").is_subset(&epoll_waits()));
}

/// CPU time that its loops took so far, in nanoseconds.
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

/// A busy loop is one over epoll that goes on asking before it sleeps, as it does in the end.
#[test]
fn busy_loops_ask_before_they_sleep() {
    let took = ["events", "busy"].map(|io| {
        let (served, mut streams) = served(io);
        let pid = served.pid();
        assert!(served.said.contains(&format!(r#""io":"{io}""#)), "{}", served.said);
        assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
        assert!(holds(pid).contains("anon_inode:[eventpoll]"));
        let before = loops_ns(pid);
        for n in 0..5 * CONNECTIONS {
            let stream = &mut streams[n % CONNECTIONS];
            // Asleep, all of them: each request is what wakes one.
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

/// Where the kernel has no io_uring the server says so, and is one of events.
#[test]
fn uring_is_loops_over_rings() {
    let (served, _streams) = served("uring");
    let pid = served.pid();
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    if served.said.contains(r#""io":"events""#) {
        assert!(holds(pid).contains("anon_inode:[eventpoll]"));
        return;
    }
    assert!(served.said.contains(r#""io":"uring""#), "{}", served.said);
    assert!(holds(pid).contains("anon_inode:[io_uring]"));
    assert!(!holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "loop").is_subset(&calls(&[libc::SYS_io_uring_enter])));
}
