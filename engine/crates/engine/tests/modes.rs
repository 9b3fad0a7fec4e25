//! The ways of I/O, seen from outside: a server's threads, what it holds open, and the system call that
//! it waits in.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const CONNECTIONS: usize = 20;

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; it must be reaped either way.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with some connections that have said something; the line it announced itself with.
fn served(io: &str) -> (Served, Vec<TcpStream>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"))
        .args(["serve", "--listen", "127.0.0.1:0", "--threads", "2", "--io", io])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the engine");
    let mut said = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    let served = Served(child);
    BufReader::new(stdout).read_line(&mut said).expect("an announcement");
    let address = said.split('"').find(|part| part.starts_with("127.")).expect("an address");
    let streams = (0..CONNECTIONS).map(|_| {
        let mut stream = TcpStream::connect(address).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(b"mn\r\n").expect("a server that reads");
        stream.read_exact(&mut [0; 4]).expect("a server that answers");
        stream
    });
    (served, streams.collect(), said)
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
    let (served, _streams, said) = served("blocking");
    let pid = served.0.id();
    assert!(said.contains(r#""io":"blocking""#), "{said}");
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (CONNECTIONS, 0));
    assert!(!holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "connection").is_subset(&calls(&[libc::SYS_read, libc::SYS_recvfrom])));
}

#[test]
fn events_are_loops_over_epoll() {
    let (served, _streams, said) = served("events");
    let pid = served.0.id();
    assert!(said.contains(r#""io":"events""#), "{said}");
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    assert!(holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(!holds(pid).contains("anon_inode:[io_uring]"));
    let waits = calls(&[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, EPOLL_WAIT]);
    assert!(waits_in(pid, "loop").is_subset(&waits));
}

#[cfg(target_arch = "x86_64")]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_pwait;

/// Where the kernel has no io_uring the server says so, and is one of events.
#[test]
fn uring_is_loops_over_rings() {
    let (served, _streams, said) = served("uring");
    let pid = served.0.id();
    assert_eq!((count(pid, "connection"), count(pid, "loop")), (0, 2));
    if said.contains(r#""io":"events""#) {
        assert!(holds(pid).contains("anon_inode:[eventpoll]"));
        return;
    }
    assert!(said.contains(r#""io":"uring""#), "{said}");
    assert!(holds(pid).contains("anon_inode:[io_uring]"));
    assert!(!holds(pid).contains("anon_inode:[eventpoll]"));
    assert!(waits_in(pid, "loop").is_subset(&calls(&[libc::SYS_io_uring_enter])));
}
