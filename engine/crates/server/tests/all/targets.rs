//! The servers for the tables of cases: the embedded server and the real memcached.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cachemark_properties::cases::{TextCase, Version};
use cachemark_server::{Accounts, Endpoint, IoMode, Server, Settings, State, start};

/// Tools check the version of memcached.
pub const VERSION: &str = "1.6.45-test";
/// Users and passwords of the servers that require a login.
const ACCOUNTS: &str = "ann:s3c\nbob:pw\n";
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Target {
    pub address: String,
    /// The version that it tells.
    pub told: String,
    /// `None` for the embedded server.
    pub memcached: Option<Version>,
}

impl Target {
    /// The embedded server at this address.
    pub fn embedded(address: String) -> Target {
        Target { address, told: VERSION.to_owned(), memcached: None }
    }

    /// The server's replies to a case.
    pub fn reply_to<'a>(&self, case: &'a TextCase) -> &'a str {
        self.memcached.map_or(&case.reply, |version| case.reply_of(version))
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a server that listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Send the request in pieces of at most this length, and return all replies until the connection ends. Our
    /// side is closed after the request.
    pub fn exchange(&self, request: &[u8], piece: usize, closed: bool) -> Vec<u8> {
        let mut stream = self.connect();
        let mut reader = stream.try_clone().expect("a socket");
        let reading = thread::spawn(move || {
            let mut reply = Vec::new();
            // A reset ends the connection too.
            let _ = reader.read_to_end(&mut reply);
            reply
        });
        for chunk in request.chunks(piece) {
            if stream.write_all(chunk).is_err() {
                assert!(closed, "the server ended the connection early");
                break;
            }
        }
        if !closed {
            stream.shutdown(Shutdown::Write).expect("a socket");
        }
        reading.join().expect("a reader")
    }
}

pub fn settings(io: IoMode) -> Settings {
    Settings {
        io,
        threads: 2,
        memory_bytes: 64 << 20,
        item_bytes_max: 1 << 20,
        max_connections: 1024,
        ..Settings::default()
    }
}

pub fn embedded(io: IoMode) -> (Server, Target) {
    serving(State::new(settings(io), VERSION))
}

/// The same with a login for the users of `ACCOUNTS`.
pub fn guarded(io: IoMode) -> (Server, Target) {
    let accounts = Accounts::parse(ACCOUNTS).expect("accounts");
    serving(State::new(settings(io), VERSION).with_accounts(accounts))
}

/// The embedded server with this state.
pub fn serving(state: State) -> (Server, Target) {
    let endpoints = [Endpoint::Tcp("127.0.0.1:0".to_owned())];
    let server = start(&endpoints, &Arc::new(state)).expect("a server");
    let address = server.addresses[0].clone();
    (server, Target::embedded(address))
}

pub struct Memcached(Child);

impl Drop for Memcached {
    fn drop(&mut self) {
        // It may have ended already; it must be reaped in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A memcached process on a free port.
pub fn memcached() -> (Memcached, Target) {
    memcached_with(&[])
}

/// The same with a login for the users of `ACCOUNTS`.
pub fn guarded_memcached() -> (Memcached, Target) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("accounts");
    std::fs::write(&path, ACCOUNTS).expect("a file");
    memcached_with(&["-Y", path.to_str().expect("a path of text")])
}

pub fn memcached_with(arguments: &[&str]) -> (Memcached, Target) {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = folder.path().join("ports");
    let user = if rustix::process::geteuid().is_root() { vec!["-u", "root"] } else { vec![] };
    let spawned = Command::new("memcached")
        .args(["-l", "127.0.0.1", "-p", "-1", "-U", "0"])
        .args(user)
        .args(arguments)
        .env("MEMCACHED_PORT_FILENAME", &ports)
        .stderr(Stdio::null())
        .spawn();
    let memcached = Memcached(spawned.expect("memcached on PATH: apt-get install memcached"));
    (memcached, memcached_target(&ports))
}

fn memcached_target(ports: &Path) -> Target {
    let began = Instant::now();
    let port = loop {
        let text = std::fs::read_to_string(ports).unwrap_or_default();
        if let Some(port) = text.lines().find_map(|line| line.strip_prefix("TCP INET: ")) {
            break port.to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "memcached does not listen");
        thread::yield_now();
    };
    // A server with login does not tell its version, but its program does.
    let told = Command::new("memcached").arg("-V").output().expect("memcached on PATH");
    let told = String::from_utf8(told.stdout).expect("text");
    let told = told.trim().trim_start_matches("memcached ").to_owned();
    let memcached = Some(told.parse().expect("a version"));
    Target { address: format!("127.0.0.1:{port}"), told, memcached }
}
