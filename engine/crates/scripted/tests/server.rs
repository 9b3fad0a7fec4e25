//! The scripted server over real sockets: its replies and its log. The only timing that is checked is
//! that nothing is sent too early.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cachemark_scripted::{
    ReadOutcome, ReadRecord, Script, ScriptedServer, ScriptedServerSettings, monotonic_ns,
};
use cachemark_server::{Endpoint, IoMode, Settings};

struct Server {
    address: String,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<ScriptedServer>,
}

impl Server {
    fn start(script: &str) -> Server {
        let store = Settings {
            io: IoMode::Events,
            threads: 1,
            memory_bytes: 64 << 20,
            item_bytes_max: 8 << 20,
            max_connections: 64,
            ..Settings::default()
        };
        let script = Script::parse(script).expect("a script");
        let settings = ScriptedServerSettings { script, store, version: "0", log_requests: 1000 };
        let endpoint = Endpoint::Tcp("127.0.0.1:0".to_owned());
        let mut server = ScriptedServer::listen(&[endpoint], settings).expect("a port");
        let address = server.addresses().remove(0);
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            server.run(&stop_flag).expect("it serves");
            server
        });
        Server { address, stop, thread }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        stream
    }

    /// Stop the server and return its log.
    fn records(self) -> Vec<ReadRecord> {
        self.stop.store(true, Ordering::Relaxed);
        let server = self.thread.join().expect("no panic");
        server.log().records().to_vec()
    }
}

/// Send a request and check the reply.
fn ask(stream: &mut TcpStream, request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("it reads");
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).expect("it answers");
    assert_eq!(String::from_utf8_lossy(&reply), String::from_utf8_lossy(expected));
}

fn outcomes(records: &[ReadRecord]) -> Vec<ReadOutcome> {
    records.iter().map(|record| record.outcome).collect()
}

const SET: &[u8] = b"set k 0 0 2\r\nab\r\n";
const HIT: &[u8] = b"VALUE k 0 2\r\nab\r\nEND\r\n";

#[test]
fn reads_are_delayed_and_other_commands_are_not() {
    let server = Server::start("delay = { kind = 'list', ms = [5, 1] }");
    let mut stream = server.connect();
    ask(&mut stream, SET, b"STORED\r\n");
    ask(&mut stream, b"version\r\n", b"VERSION 0\r\n");
    let asked_ns = monotonic_ns();
    // The second reply is due before the first, but is sent after it.
    ask(&mut stream, b"get k\r\nget nobody\r\n", b"VALUE k 0 2\r\nab\r\nEND\r\nEND\r\n");
    let told_ns = monotonic_ns();
    ask(&mut stream, b"delete k\r\n", b"DELETED\r\n");
    ask(&mut stream, b"flush_all\r\n", b"OK\r\n");
    let records = server.records();
    assert_eq!(outcomes(&records), [ReadOutcome::Answered; 2]);
    for record in &records {
        assert!(asked_ns < record.received_ns && record.sent_ns < told_ns);
        assert!(record.sent_ns >= record.due_ns, "before its time");
        assert_eq!(record.due_ns - records[0].received_ns, 5_000_000);
    }
}

#[test]
fn a_restart_starts_the_script_and_its_log_again() {
    let server = Server::start("wrong_every = 2");
    let mut stream = server.connect();
    ask(&mut stream, SET, b"STORED\r\n");
    ask(&mut stream, b"get k\r\n", HIT);
    let mut other = server.connect();
    ask(&mut other, b"stats reset\r\n", b"RESET\r\n");
    ask(&mut stream, b"get k\r\n", HIT);
    ask(&mut stream, b"get k\r\n", b"VALUE k 0 2\r\n`b\r\nEND\r\n");
    assert_eq!(outcomes(&server.records()), [ReadOutcome::Answered, ReadOutcome::Wrong]);
}

#[test]
fn a_dropped_read_silences_its_connection_alone() {
    let server = Server::start("drop_every = 2");
    let mut silenced = server.connect();
    ask(&mut silenced, b"get k\r\nget k\r\nget k\r\n", b"END\r\n");
    let mut other = server.connect();
    ask(&mut other, b"get k\r\n", b"END\r\n");
    silenced.set_nonblocking(true).expect("a socket");
    let silent = silenced.read(&mut [0; 8]).expect_err("nothing more");
    assert_eq!(silent.kind(), ErrorKind::WouldBlock);
    let expected =
        [ReadOutcome::Answered, ReadOutcome::Dropped, ReadOutcome::Behind, ReadOutcome::Answered];
    assert_eq!(outcomes(&server.records()), expected);
}

#[test]
fn close_after_ends_a_connection_at_the_next_read() {
    let server = Server::start("close_after = 2");
    for _ in 0..2 {
        let mut stream = server.connect();
        ask(&mut stream, b"get k\r\nget k\r\n", b"END\r\nEND\r\n");
        stream.write_all(b"get k\r\n").expect("it reads");
        assert_eq!(stream.read(&mut [0; 8]).expect("its end"), 0);
    }
    let once = [ReadOutcome::Answered, ReadOutcome::Answered, ReadOutcome::Closed];
    assert_eq!(outcomes(&server.records()), [once, once].concat());
}

#[test]
fn a_large_value_comes_in_chunks() {
    let server = Server::start("chunks = { first_ms = 1, last_ms = 5 }");
    let mut stream = server.connect();
    let value = vec![b'v'; 1_000_000];
    let set = [b"set k 0 0 1000000\r\n".to_vec(), value.clone(), b"\r\n".to_vec()].concat();
    ask(&mut stream, &set, b"STORED\r\n");
    let hit = [b"VALUE k 0 1000000\r\n".to_vec(), value, b"\r\nEND\r\n".to_vec()].concat();
    ask(&mut stream, b"get k\r\n", &hit);
    let records = server.records();
    let [ReadRecord { received_ns, first_ns, sent_ns, .. }] = records[..] else {
        panic!("one read")
    };
    assert!(first_ns - received_ns >= 1_000_000);
    assert!(sent_ns - received_ns >= 5_000_000);
}

#[test]
fn a_late_accept_delays_the_first_answer() {
    let server = Server::start("accept_ms = 20");
    let asked_ns = monotonic_ns();
    ask(&mut server.connect(), b"get k\r\n", b"END\r\n");
    assert!(monotonic_ns() - asked_ns >= 20_000_000);
    let records = server.records();
    assert!(records[0].received_ns - asked_ns >= 20_000_000);
}

#[test]
fn meta_requests_are_scripted_too() {
    let server = Server::start("wrong_every = 2");
    let mut stream = server.connect();
    ask(&mut stream, b"ms k 2\r\nab\r\n", b"HD\r\n");
    ask(&mut stream, b"mg k v\r\nmg k v\r\nmn\r\n", b"VA 2\r\nab\r\nVA 2\r\n`b\r\nMN\r\n");
    assert_eq!(outcomes(&server.records()), [ReadOutcome::Answered, ReadOutcome::Wrong]);
}

#[test]
fn binary_requests_are_scripted_too() {
    let server = Server::start("wrong_every = 1");
    let mut stream = server.connect();
    ask(&mut stream, b"version\r\n", b"VERSION 0\r\n");
    let mut stream = server.connect();
    let request = |opcode: u8, extras: &[u8], rest: &[u8]| {
        let mut bytes = vec![0x80, opcode, 0, 1, extras.len() as u8];
        bytes.resize(24, 0);
        bytes[11] = (extras.len() + rest.len()) as u8;
        [bytes, extras.to_vec(), rest.to_vec()].concat()
    };
    stream.write_all(&request(0x01, &[0; 8], b"kab")).expect("it reads");
    stream.read_exact(&mut [0; 24]).expect("stored");
    stream.write_all(&request(0x00, &[], b"k")).expect("it reads");
    let mut hit = [0; 30];
    stream.read_exact(&mut hit).expect("a hit");
    assert_eq!(&hit[24..], b"\0\0\0\0`b");
    assert_eq!(outcomes(&server.records()), [ReadOutcome::Wrong]);
}
