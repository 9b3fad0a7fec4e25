//! A proxy on a thread of its own, in front of an embedded server, and clients of both.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cachemark_fault_proxy::{Answer, CommandSender, FaultProxy, FaultProxySettings, parse_command};
use cachemark_server::{Endpoint, IoMode, Server, Settings, State, start};
use serde_json::Value;

/// Longer than any step takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn serve() -> (Server, SocketAddr) {
    let settings = Settings {
        io: IoMode::Events,
        threads: 1,
        memory_bytes: 8 << 20,
        item_bytes_max: 1 << 20,
        max_connections: 64,
        ..Settings::default()
    };
    let state = Arc::new(State::new(settings, "1.2.3"));
    let server = start(&[Endpoint::Tcp("127.0.0.1:0".to_owned())], &state).expect("a server");
    let address = server.addresses[0].parse().expect("an address");
    (server, address)
}

/// The values of the keys `a` and `b` in a server that is filled.
pub const VALUES: [&[u8]; 2] = [b"hello", b"there"];

/// A server with the keys `a` and `b`.
pub fn filled() -> (Server, SocketAddr) {
    let (server, address) = serve();
    let mut stream = connect(address);
    for (key, value) in ["a", "b"].iter().zip(VALUES) {
        let value = std::str::from_utf8(value).expect("text");
        let set = format!("set {key} 0 0 5\r\n{value}\r\n");
        assert_eq!(ask(&mut stream, set.as_bytes(), 8), b"STORED\r\n");
    }
    (server, address)
}

/// A proxy that runs until `end` is called.
pub struct Proxied {
    pub address: SocketAddr,
    commands: CommandSender,
    answers: Receiver<Answer>,
    log: tempfile::NamedTempFile,
    thread: JoinHandle<()>,
}

impl Proxied {
    pub fn start(upstream: SocketAddr) -> Proxied {
        Proxied::with_connections(upstream, 1000)
    }

    /// A proxy for at most `connections_max` connections at a time.
    pub fn with_connections(upstream: SocketAddr, connections_max: usize) -> Proxied {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let settings = FaultProxySettings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            upstream,
            connections_max,
            log: Some(log.reopen().expect("a file")),
            log_events_max: 10_000,
        };
        let mut proxy = FaultProxy::listen(settings).expect("a port");
        let (address, commands) = (proxy.address(), proxy.commands());
        let (sender, answers) = channel();
        let thread = thread::spawn(move || {
            let stop = AtomicBool::new(false);
            let answer =
                |answer: &Answer| sender.send(answer.clone()).map_err(std::io::Error::other);
            proxy.run(&stop, answer).expect("it runs");
        });
        Proxied { address, commands, answers, log, thread }
    }

    /// Start the fault of this JSON, and wait until it is in force.
    pub fn fault(&self, json: &str) -> u64 {
        self.command(&format!("{{\"fault\": {json}}}")).expect("a fault")
    }

    pub fn command(&self, line: &str) -> Answer {
        self.commands.send(parse_command(line));
        self.answers.recv_timeout(PATIENCE).expect("an answer")
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    pub fn log_path(&self) -> &std::path::Path {
        self.log.path()
    }

    /// End the proxy, and read its log.
    pub fn end(self) -> Vec<Value> {
        self.commands.stop();
        self.thread.join().expect("no panic");
        let text = std::fs::read_to_string(self.log.path()).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Send a request, and read this many bytes.
pub fn ask(stream: &mut TcpStream, request: &[u8], bytes: usize) -> Vec<u8> {
    stream.write_all(request).expect("it reads");
    let mut reply = vec![0; bytes];
    stream.read_exact(&mut reply).expect("it answers");
    reply
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Closed,
    Reset,
}

/// Read until the stream ends.
pub fn read_to_end(stream: &mut TcpStream) -> (Vec<u8>, Ending) {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return (all, Ending::Closed),
            Ok(bytes) => all.extend_from_slice(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return (all, Ending::Reset);
            }
            Err(error) => panic!("{error}, after {} bytes", all.len()),
        }
    }
}

/// Whether nothing has arrived yet.
pub fn is_empty(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("a socket");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
