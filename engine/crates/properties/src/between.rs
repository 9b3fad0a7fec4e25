//! The fault proxy between two peers that send anything. It must not panic, hang, or change bytes where no fault asks
//! for it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cachemark_fault_proxy::{Answer, CommandSender, FaultProxy, FaultProxySettings, parse_command};

use crate::connections::Piece;

/// Longer than the proxy takes on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A fault, and what it may do to the bytes of each direction.
struct Between {
    fault: &'static str,
    requests: Effect,
    replies: Effect,
}

#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Nothing,
    /// The stream may end early.
    Cuts,
    Changes,
}

use Effect::{Changes, Cuts, Nothing};

const FAULTS: [Between; 11] = [
    Between { fault: "null", requests: Nothing, replies: Nothing },
    Between {
        fault: r#"{"kind": "blackhole", "after_bytes": 9}"#,
        requests: Nothing,
        replies: Nothing,
    },
    Between { fault: r#"{"kind": "drip", "interval_us": 1}"#, requests: Nothing, replies: Nothing },
    Between { fault: r#"{"kind": "never-answers"}"#, requests: Nothing, replies: Cuts },
    Between { fault: r#"{"kind": "reset-in-value", "share": 0.5}"#, requests: Cuts, replies: Cuts },
    Between { fault: r#"{"kind": "close-in-value", "share": 0.5}"#, requests: Cuts, replies: Cuts },
    Between {
        fault: r#"{"kind": "truncate-value", "share": 0.5}"#,
        requests: Nothing,
        replies: Changes,
    },
    Between {
        fault: r#"{"kind": "server-error", "share": 0.5}"#,
        requests: Changes,
        replies: Changes,
    },
    Between {
        fault: r#"{"kind": "garbage-line", "share": 0.5}"#,
        requests: Nothing,
        replies: Changes,
    },
    Between {
        fault: r#"{"kind": "unasked-reply", "share": 0.5}"#,
        requests: Nothing,
        replies: Changes,
    },
    Between {
        fault: r#"{"kind": "other-key", "share": 0.5}"#,
        requests: Nothing,
        replies: Changes,
    },
];

/// A proxy on a thread, which all inputs share: a panic in one of them is seen by the next command at the latest.
struct Proxy {
    address: SocketAddr,
    upstream: TcpListener,
    commands: CommandSender,
    answers: Receiver<Answer>,
}

static PROXY: LazyLock<Mutex<Proxy>> = LazyLock::new(|| Mutex::new(Proxy::start()));

impl Proxy {
    fn start() -> Proxy {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
        let settings = FaultProxySettings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            upstream: upstream.local_addr().expect("bound"),
            connections_max: 16,
            log: None,
            log_events_max: 0,
        };
        let mut proxy = FaultProxy::listen(settings).expect("a port");
        let (address, commands) = (proxy.address(), proxy.commands());
        let (sender, answers) = channel();
        thread::spawn(move || {
            let answer =
                |answer: &Answer| sender.send(answer.clone()).map_err(std::io::Error::other);
            proxy.run(&AtomicBool::new(false), answer)
        });
        Proxy { address, upstream, commands, answers }
    }

    fn begin(&self, fault: &str) {
        self.commands.send(parse_command(&format!("{{\"fault\": {fault}}}")));
        self.answers.recv_timeout(PATIENCE).expect("the proxy runs").expect("a fault");
    }

    fn connect(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.address).expect("it listens");
        let (server, _) = self.upstream.accept().expect("a socket");
        for each in [&client, &server] {
            each.set_read_timeout(Some(PATIENCE)).expect("a socket");
        }
        (client, server)
    }
}

/// Send pieces in both directions while a fault lasts: pieces with even numbers are requests, the others replies.
pub fn changes_only_what_the_fault_says(fault: u8, pieces: &[Piece<'_>]) {
    let proxy = PROXY.lock().unwrap_or_else(PoisonError::into_inner);
    let between = &FAULTS[usize::from(fault) % FAULTS.len()];
    let (mut client, mut server) = proxy.connect();
    proxy.begin(between.fault);
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for (number, piece) in pieces {
        let (stream, sent) = match number % 2 {
            0 => (&mut client, &mut requests),
            _ => (&mut server, &mut replies),
        };
        // The fault may have ended the connection.
        let _ = stream.write_all(piece);
        sent.extend_from_slice(piece);
    }
    let (mut requested, mut replied) = (Vec::new(), Vec::new());
    let _ = client.shutdown(Shutdown::Write);
    if between.fault.contains("blackhole") {
        proxy.begin("null");
    }
    read_to_end(&mut server, &mut requested);
    let _ = server.shutdown(Shutdown::Write);
    read_to_end(&mut client, &mut replied);
    check("requests", between.requests, &requests, &requested);
    check("replies", between.replies, &replies, &replied);
    proxy.begin("null");
}

fn check(what: &str, effect: Effect, sent: &[u8], came: &[u8]) {
    let (sent, came) = (sent.escape_ascii().to_string(), came.escape_ascii().to_string());
    match effect {
        Nothing => assert_eq!(came, sent, "{what}"),
        Cuts => assert!(sent.starts_with(&came), "{what}: {came} of {sent}"),
        Changes => {}
    }
}

/// Read until the stream ends, or is reset.
fn read_to_end(stream: &mut TcpStream, all: &mut Vec<u8>) {
    if let Err(error) = stream.read_to_end(all) {
        let ends = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::NotConnected];
        assert!(ends.contains(&error.kind()), "{error}, after {} bytes", all.len());
    }
}
