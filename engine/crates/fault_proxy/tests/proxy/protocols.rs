//! A client's view of each fault that changes replies, in each protocol.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::{Ending, Proxied, VALUES, ask, connect, filled, read_to_end};

/// How a client reads a key, and where the value is in the reply.
#[derive(Clone, Copy, Debug)]
enum Wire {
    Text,
    Meta,
    Binary,
}

const WIRES: [Wire; 3] = [Wire::Text, Wire::Meta, Wire::Binary];

fn packet(magic: u8, opcode: u8, opaque: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    (bytes[0], bytes[1], bytes[3], bytes[4]) = (magic, opcode, key.len() as u8, extras.len() as u8);
    bytes[11] = (extras.len() + key.len() + value.len()) as u8;
    bytes[15] = opaque;
    [&bytes, extras, key, value].concat()
}

impl Wire {
    /// A read of key `a` or `b`.
    fn read(self, key: u8) -> Vec<u8> {
        let name = char::from(b'a' + key);
        match self {
            Wire::Text => format!("get {name}\r\n").into_bytes(),
            Wire::Meta => format!("mg {name} k v\r\n").into_bytes(),
            Wire::Binary => packet(0x80, 0x00, 10 + key, b"", &[name as u8], b""),
        }
    }

    fn out_of_memory(self) -> Vec<u8> {
        match self {
            Wire::Binary => {
                let mut reply = packet(0x81, 0x00, 10, b"", b"", b"Out of memory");
                reply[7] = 0x82;
                reply
            }
            _ => b"SERVER_ERROR out of memory storing object\r\n".to_vec(),
        }
    }

    /// The reply to a read as the server gives it, which is known by its value's place.
    fn reply(self, server: &mut TcpStream, key: u8) -> Vec<u8> {
        let bytes = match self {
            Wire::Text => b"VALUE a 0 5\r\nhello\r\nEND\r\n".len(),
            Wire::Meta => b"VA 5 ka\r\nhello\r\n".len(),
            Wire::Binary => 24 + 4 + 5,
        };
        let reply = ask(server, &self.read(key), bytes);
        assert!(reply.windows(5).any(|part| part == VALUES[usize::from(key)]));
        reply
    }
}

/// The replies to two reads of a client.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    bytes: Vec<u8>,
    ending: Option<Ending>,
}

/// The replies that a client must see to reads of `a` and `b`, whose true replies are given, and where its bytes go
/// wrong.
fn expected(fault: &str, wire: Wire, [a, b]: [&[u8]; 2]) -> (Seen, usize) {
    let value = a.windows(5).position(|part| part == VALUES[0]).expect("a value");
    let open = |bytes: Vec<u8>| Seen { bytes, ending: None };
    let garbage = b"GARBAGE 8c1f 7e02 this is no reply\r\n";
    // In the text protocol `END` is a frame of its own behind the value.
    let (frame, end) = match wire {
        Wire::Text => (a.len() - 5, &b"END\r\n"[..]),
        _ => (a.len(), &b""[..]),
    };
    match fault {
        "reset-in-value" => {
            (Seen { bytes: a[..value + 2].to_vec(), ending: Some(Ending::Reset) }, value + 2)
        }
        "close-in-value" => {
            (Seen { bytes: a[..value + 2].to_vec(), ending: Some(Ending::Closed) }, value + 2)
        }
        "truncate-value" => {
            let cut = [&a[..value + 3], &a[value + 5..], &b[..value + 3], &b[value + 5..]];
            (open(cut.concat()), value + 3)
        }
        "garbage-line" => (open([garbage, a, garbage, b].concat()), 0),
        "unasked-reply" => (open([a, a, b, b].concat()), a.len()),
        "other-key" => (open([a, &a[..frame], end].concat()), a.len()),
        "server-error" => {
            let error = wire.out_of_memory();
            let mut other = error.clone();
            if matches!(wire, Wire::Binary) {
                other[15] = 11;
            }
            (open([error, other].concat()), 0)
        }
        _ => (open([a, b].concat()), a.len() + b.len()),
    }
}

/// The replies to a client that reads both keys, one after the other or at once.
fn see(proxied: &Proxied, wire: Wire, at_once: bool, wanted: &Seen) -> Seen {
    let mut client = proxied.connect();
    let requests = if at_once {
        vec![[wire.read(0), wire.read(1)].concat()]
    } else {
        vec![wire.read(0), wire.read(1)]
    };
    let mut bytes = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        // The connection may have ended already.
        let _ = client.write_all(request);
        if wanted.ending.is_none() && number + 1 == requests.len() {
            let mut rest = vec![0; wanted.bytes.len() - bytes.len()];
            client.read_exact(&mut rest).expect("it answers");
            bytes.extend(rest);
        } else if wanted.ending.is_some() {
            let (rest, ending) = read_to_end(&mut client);
            return Seen { bytes: rest, ending: Some(ending) };
        } else {
            let mut first = [0; 1];
            client.read_exact(&mut first).expect("it answers");
            bytes.extend(first);
        }
    }
    Seen { bytes, ending: None }
}

#[test]
fn each_fault_looks_the_same_in_every_protocol() {
    let (_server, upstream) = filled();
    let mut direct = connect(upstream);
    let mut binary = connect(upstream);
    for (name, parameters) in [
        ("reset-in-value", r#", "after_bytes": 2"#),
        ("close-in-value", r#", "after_bytes": 2"#),
        ("truncate-value", r#", "share": 1, "missing_bytes": 2"#),
        ("garbage-line", r#", "share": 1"#),
        ("unasked-reply", r#", "share": 1"#),
        ("other-key", r#", "share": 1"#),
        ("server-error", r#", "share": 1"#),
        ("drip", r#", "interval_us": 10"#),
        ("delay", r#", "delay_ms": 2"#),
    ] {
        for (wire, at_once) in WIRES.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
            let server = if matches!(wire, Wire::Binary) { &mut binary } else { &mut direct };
            let replies = [wire.reply(server, 0), wire.reply(server, 1)];
            let (wanted, wrong_at) = expected(name, wire, [&replies[0], &replies[1]]);
            let proxied = Proxied::start(upstream);
            proxied.fault(&format!(r#"{{"kind": "{name}"{parameters}}}"#));
            let seen = see(&proxied, wire, at_once, &wanted);
            let shown = (seen.bytes.escape_ascii().to_string(), seen.ending);
            let wanted = (wanted.bytes.escape_ascii().to_string(), wanted.ending);
            assert_eq!(shown, wanted, "{name} in {wire:?}, at once: {at_once}");
            let log = proxied.end();
            let injected = log.iter().find(|line| line["event"] == "injected");
            let offset = injected.map(|line| line["reply_offset"].clone());
            let first = if name == "drip" || name == "delay" { 0 } else { wrong_at };
            assert_eq!(offset, Some(first.into()), "{name} in {wire:?}");
        }
    }
}
