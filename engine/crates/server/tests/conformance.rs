//! The cases of conformance/server against the embedded server in both I/O modes and against the
//! real memcached, which is the judge.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cachemark_server::{Endpoint, IoMode, Server, Settings, State, start};
use serde::Deserialize;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    request: String,
    reply: String,
    reply_1_6_18: Option<String>,
    #[serde(default)]
    closed: bool,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/server/text.toml");
    let text = std::fs::read_to_string(path).expect("the table of cases");
    toml::from_str::<Table>(&text).expect("a table of cases").case
}

/// `{k250}` is a key of 250 bytes, `{x9}` nine bytes, `{keys30}` thirty keys.
fn expand(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').expect("a closing brace");
        out.extend_from_slice(&rest.as_bytes()[..open]);
        let field = &rest[open + 1..close];
        let digits = field.find(|c: char| c.is_ascii_digit()).expect("a number");
        let count: usize = field[digits..].parse().expect("a number");
        match &field[..digits] {
            "k" => out.extend(std::iter::repeat_n(b'k', count)),
            "x" => out.extend(std::iter::repeat_n(b'x', count)),
            "keys" => {
                let keys: Vec<String> = (0..count).map(|n| format!("q{n}")).collect();
                out.extend_from_slice(keys.join(" ").as_bytes());
            }
            other => panic!("{other}?"),
        }
        rest = &rest[close + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

struct Target {
    address: String,
    version: String,
    is_1_6_18: bool,
}

impl Target {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a server that listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Send in pieces of at most so many bytes; everything that comes back until the server ends
    /// the connection, or has nothing more to say to one that we have ended.
    fn exchange(&self, request: &[u8], piece: usize, closed: bool) -> Vec<u8> {
        let mut stream = self.connect();
        let mut reader = stream.try_clone().expect("a socket");
        let reading = thread::spawn(move || {
            let mut reply = Vec::new();
            // A reset is an end too.
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

    fn check(&self, case: &Case, piece: usize) {
        self.exchange(b"flush_all\r\n", usize::MAX, false);
        let reply = match &case.reply_1_6_18 {
            Some(reply) if self.is_1_6_18 => reply,
            _ => &case.reply,
        };
        let expected = expand(&reply.replace("<version>", &self.version));
        let actual = self.exchange(&expand(&case.request), piece, case.closed);
        let shown = without_cas(&actual);
        assert!(
            shown == expected,
            "{}: {} in pieces of {piece}\nexpected {:?}\nactual   {:?}",
            self.address,
            case.name,
            String::from_utf8_lossy(&expected[..expected.len().min(300)]),
            String::from_utf8_lossy(&shown[..shown.len().min(300)]),
        );
    }
}

/// The unique number of `VALUE key flags length cas` is of no meaning here.
fn without_cas(reply: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in reply.split_inclusive(|byte| *byte == b'\n') {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        if words.len() == 5 && words[0] == b"VALUE" {
            out.extend_from_slice(&words[..4].join(&b' '));
            out.extend_from_slice(b" <cas>\r\n");
        } else {
            out.extend_from_slice(line);
        }
    }
    out
}

fn embedded(io: IoMode) -> (Server, Target) {
    let settings = Settings {
        io,
        threads: 2,
        memory_bytes: 64 << 20,
        item_bytes_max: 1 << 20,
        max_connections: 1024,
    };
    let state = Arc::new(State::new(settings, "1.2.3"));
    let server = start(&[Endpoint::Tcp("127.0.0.1:0".to_owned())], &state).expect("a server");
    let address = server.addresses[0].clone();
    (server, Target { address, version: "1.2.3".to_owned(), is_1_6_18: false })
}

#[test]
fn the_embedded_server_answers_as_memcached() {
    for io in [IoMode::Blocking, IoMode::Events] {
        let (_server, target) = embedded(io);
        for case in cases() {
            target.check(&case, usize::MAX);
            // Cut at many places; large requests in larger pieces, to stay quick.
            let piece =
                if case.request.len() < 500 && !case.request.contains('{') { 1 } else { 4001 };
            target.check(&case, piece);
            target.check(&case, 7.max(piece));
        }
    }
}

struct Memcached(Child);

impl Drop for Memcached {
    fn drop(&mut self) {
        // It may have died by itself; it must be reaped either way.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn memcached_agrees_with_the_cases() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = folder.path().join("ports");
    let user = if rustix::process::geteuid().is_root() { vec!["-u", "root"] } else { vec![] };
    let spawned = Command::new("memcached")
        .args(["-l", "127.0.0.1", "-p", "-1", "-U", "0"])
        .args(user)
        .env("MEMCACHED_PORT_FILENAME", &ports)
        .stderr(Stdio::null())
        .spawn();
    let _memcached = Memcached(spawned.expect("memcached on PATH: apt-get install memcached"));
    let target = memcached_target(&ports);
    for case in cases() {
        target.check(&case, usize::MAX);
    }
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
    let mut target =
        Target { address: format!("127.0.0.1:{port}"), version: String::new(), is_1_6_18: false };
    let reply = target.exchange(b"version\r\n", usize::MAX, false);
    let version = String::from_utf8(reply).expect("text");
    target.version = version.trim().trim_start_matches("VERSION ").to_owned();
    let minor: u32 = target.version.rsplit('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    target.is_1_6_18 = minor < 40;
    target
}
