//! The binary cases of conformance/server against the embedded server in both I/O modes and
//! against the real memcached, which is the judge.

mod targets;

use cachemark_server::IoMode;
use serde::Deserialize;
use targets::{Target, embedded, expand, guarded, memcached, table};

const OPCODES: [(&str, u8); 32] = [
    ("get", 0x00),
    ("set", 0x01),
    ("add", 0x02),
    ("replace", 0x03),
    ("delete", 0x04),
    ("incr", 0x05),
    ("decr", 0x06),
    ("quit", 0x07),
    ("flush", 0x08),
    ("getq", 0x09),
    ("noop", 0x0a),
    ("version", 0x0b),
    ("getk", 0x0c),
    ("getkq", 0x0d),
    ("append", 0x0e),
    ("prepend", 0x0f),
    ("stat", 0x10),
    ("setq", 0x11),
    ("addq", 0x12),
    ("replaceq", 0x13),
    ("deleteq", 0x14),
    ("incrq", 0x15),
    ("decrq", 0x16),
    ("quitq", 0x17),
    ("flushq", 0x18),
    ("appendq", 0x19),
    ("prependq", 0x1a),
    ("touch", 0x1c),
    ("gat", 0x1d),
    ("gatq", 0x1e),
    ("gatk", 0x23),
    ("gatkq", 0x24),
];

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    send: Vec<Request>,
    #[serde(default)]
    raw: String,
    reply: Vec<Reply>,
    #[serde(default)]
    closed: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Request {
    op: String,
    key: String,
    extras: String,
    value: String,
    cas: u64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Reply {
    op: String,
    status: u16,
    key: String,
    extras: String,
    value: String,
    value_hex: String,
    cas: bool,
}

fn opcode(name: &str) -> u8 {
    if let Some(hex) = name.strip_prefix("0x") {
        return u8::from_str_radix(hex, 16).expect("an opcode");
    }
    OPCODES.iter().find(|(known, _)| *known == name).expect("a known opcode").1
}

fn hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// A packet; `place` is the status of a reply and the vbucket of a request.
fn packet(magic: u8, op: u8, place: u16, opaque: u32, cas: u64, parts: [&[u8]; 3]) -> Vec<u8> {
    let [extras, key, value] = parts;
    let body = extras.len() + key.len() + value.len();
    let mut out = vec![magic, op];
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&place.to_be_bytes());
    out.extend_from_slice(&(body as u32).to_be_bytes());
    out.extend_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&cas.to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

impl Case {
    fn request(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, sent) in self.send.iter().enumerate() {
            let (extras, key, value) = (hex(&sent.extras), expand(&sent.key), expand(&sent.value));
            let parts = [&extras[..], &key[..], &value[..]];
            out.extend(packet(0x80, opcode(&sent.op), 0, index as u32, sent.cas, parts));
        }
        out.extend(hex(&self.raw));
        out
    }

    /// The replies; the opaque number of each is that of the next request of its kind.
    fn expected(&self, version: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut next = 0;
        for reply in &self.reply {
            let found = self.send.iter().skip(next).position(|sent| sent.op == reply.op);
            let opaque = found.map_or(0, |after| next + after);
            next = opaque + 1;
            let (extras, key) = (hex(&reply.extras), expand(&reply.key));
            let mut value = expand(&reply.value.replace("<version>", version));
            value.extend(hex(&reply.value_hex));
            let parts = [&extras[..], &key[..], &value[..]];
            let (op, cas) = (opcode(&reply.op), u64::from(reply.cas));
            out.extend(packet(0x81, op, reply.status, opaque as u32, cas, parts));
        }
        out
    }
}

/// A unique number that is not 0 becomes 1.
fn without_cas(reply: &[u8]) -> Vec<u8> {
    let mut out = reply.to_vec();
    let mut at = 0;
    while at + 24 <= out.len() {
        let body = u32::from_be_bytes(out[at + 8..at + 12].try_into().expect("four bytes"));
        let cas = &mut out[at + 16..at + 24];
        if cas.iter().any(|byte| *byte != 0) {
            cas.copy_from_slice(&1_u64.to_be_bytes());
        }
        at += 24 + body as usize;
    }
    out
}

fn check(target: &Target, case: &Case, piece: usize) {
    target.exchange(b"flush_all\r\n", usize::MAX, false);
    let actual = without_cas(&target.exchange(&case.request(), piece, case.closed));
    let expected = case.expected(&target.version);
    assert!(
        actual == expected,
        "{}: {} in pieces of {piece}\nexpected {}\nactual   {}",
        target.address,
        case.name,
        expected[..expected.len().min(300)].escape_ascii(),
        actual[..actual.len().min(300)].escape_ascii(),
    );
}

#[test]
fn the_embedded_server_answers_as_memcached() {
    for io in IoMode::here() {
        let (_server, target) = embedded(io);
        for case in table::<Table>("binary.toml").case {
            check(&target, &case, usize::MAX);
            check(&target, &case, if case.request().len() < 1000 { 1 } else { 4001 });
        }
    }
}

#[test]
fn memcached_agrees_with_the_cases() {
    let (_memcached, target) = memcached();
    for case in table::<Table>("binary.toml").case {
        check(&target, &case, usize::MAX);
    }
}

/// What stands in `stats` differs between servers; its shape does not.
#[test]
fn stats_are_packets_that_end_with_an_empty_one() {
    let (_server, target) = embedded(IoMode::Events);
    let request = packet(0x80, 0x10, 0, 9, 0, [b"", b"", b""]);
    let reply = target.exchange(&request, usize::MAX, false);
    let text = reply.escape_ascii().to_string();
    assert!(text.contains("version1.6.45-test"), "{text}");
    assert!(reply.ends_with(&packet(0x81, 0x10, 0, 9, 0, [b"", b"", b""])), "{text}");
}

/// SASL PLAIN, by the replies of memcached with SASL: a login that fails leaves the connection open, a
/// request of somebody unknown ends it.
#[test]
fn a_guarded_server_asks_for_a_login() {
    const REFUSED: &[u8] = b"Auth failure.";
    let login = |message: &[u8]| packet(0x80, 0x21, 0, 1, 0, [b"", b"PLAIN", message]);
    let refused = |op| packet(0x81, op, 0x20, 1, 0, [b"", b"", REFUSED]);
    let said = |op, value: &[u8]| packet(0x81, op, 0, 1, 0, [b"", b"", value]);
    let asked = |op| packet(0x80, op, 0, 1, 0, [b"", b"", b""]);
    type Packets = Vec<Vec<u8>>;
    let exchanges: [(Packets, Packets, bool); 6] = [
        (vec![asked(0x20)], vec![said(0x20, b"PLAIN")], false),
        (vec![asked(0x0b)], vec![said(0x0b, targets::VERSION.as_bytes())], false),
        (vec![asked(0x0a)], vec![refused(0x0a)], true),
        (vec![login(b"\0ann\0bad"), asked(0x0a)], vec![refused(0x21), refused(0x0a)], true),
        (
            vec![login(b"\0ann\0bad"), login(b"\0ann\0s3c"), asked(0x0a)],
            vec![refused(0x21), said(0x21, b"Authenticated"), said(0x0a, b"")],
            false,
        ),
        (
            vec![packet(0x80, 0x21, 0, 1, 0, [b"", b"CRAM-MD5", b"ann s3c"])],
            vec![refused(0x21)],
            false,
        ),
    ];
    for io in IoMode::here() {
        let (_server, target) = guarded(io);
        for (requests, replies, closed) in &exchanges {
            for piece in [usize::MAX, 1] {
                let reply = target.exchange(&requests.concat(), piece, *closed);
                assert_eq!(
                    reply.escape_ascii().to_string(),
                    replies.concat().escape_ascii().to_string()
                );
            }
        }
    }
}

#[test]
fn a_server_that_asks_nobody_knows_no_login() {
    let (_server, target) = embedded(IoMode::Events);
    let login = packet(0x80, 0x21, 0, 1, 0, [b"", b"PLAIN", b"\0ann\0s3c"]);
    let unknown = packet(0x81, 0x21, 0x81, 1, 0, [b"", b"", b"Unknown command"]);
    assert_eq!(target.exchange(&login, usize::MAX, false), unknown);
}
