//! The binary cases of conformance/server, played to the embedded server in all I/O modes and to the real
//! memcached, which is the reference.

use cachemark_properties::cases::{BinaryCase, binary, packet};
use cachemark_server::{IoMode, Protocol, Settings, State};

use crate::targets::{
    self, Target, embedded, guarded, memcached, memcached_with, serving, settings,
};

/// Replace every cas number other than 0 by 1.
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

fn check(target: &Target, case: &BinaryCase, piece: usize) {
    target.exchange(b"flush_all\r\n", usize::MAX, false);
    let actual = without_cas(&target.exchange(&case.request(), piece, case.closed));
    let expected = case.expected(&target.told);
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
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        for case in binary() {
            check(&target, &case, usize::MAX);
            check(&target, &case, if case.request().len() < 1000 { 1 } else { 4001 });
        }
    }
}

#[test]
fn memcached_agrees_with_the_cases() {
    let (_memcached, target) = memcached();
    for case in binary() {
        check(&target, &case, usize::MAX);
    }
}

#[test]
fn counts_by_prefix_are_one_row() {
    let asked = |topic: &[u8]| packet(0x80, 0x10, 0, 1, 0, [b"", topic, b""]);
    let get = packet(0x80, 0x00, 0, 1, 0, [b"", b"p:k", b""]);
    let said = |key: &[u8], value: &[u8]| packet(0x81, 0x10, 0, 1, 0, [b"", key, value]);
    let counts = b"PREFIX p get 1 hit 0 set 0 del 0\r\nEND\r\n";
    let missed = packet(0x81, 0x00, 1, 1, 0, [b"", b"", b"Not found"]);
    let requests = [asked(b"detail on"), get, asked(b"detail dump"), asked(b"detail off")].concat();
    let end = said(b"", b"");
    let replies = [&end[..], &missed, &said(b"detailed", counts), &end, &end].concat();
    let (_memcached, judge) = memcached();
    assert_eq!(judge.exchange(&requests, usize::MAX, false), replies);
    for io in IoMode::available() {
        let (_server, target) = embedded(io);
        assert_eq!(target.exchange(&requests, usize::MAX, false), replies, "{io:?}");
    }
}

/// The rows of `stats` differ between servers, but not their form.
#[test]
fn stats_are_packets_that_end_with_an_empty_one() {
    let (_server, target) = embedded(IoMode::Events);
    let request = packet(0x80, 0x10, 0, 9, 0, [b"", b"", b""]);
    let reply = target.exchange(&request, usize::MAX, false);
    let text = reply.escape_ascii().to_string();
    assert!(text.contains("version1.6.45-test"), "{text}");
    assert!(reply.ends_with(&packet(0x81, 0x10, 0, 9, 0, [b"", b"", b""])), "{text}");
}

/// SASL PLAIN, with the replies of a memcached that has SASL: a failed login leaves the connection open, a
/// request without login closes it.
#[test]
fn a_guarded_server_asks_for_a_login() {
    const REFUSED: &[u8] = b"Auth failure.";
    let login = |message: &[u8]| packet(0x80, 0x21, 0, 1, 0, [b"", b"PLAIN", message]);
    let refused = |op| packet(0x81, op, 0x20, 1, 0, [b"", b"", REFUSED]);
    let said = |op, value: &[u8]| packet(0x81, op, 0, 1, 0, [b"", b"", value]);
    let asked = |op| packet(0x80, op, 0, 1, 0, [b"", b"", b""]);
    type Packets = Vec<Vec<u8>>;
    let exchanges: [(Packets, Packets, bool); 8] = [
        (vec![asked(0x20)], vec![said(0x20, b"PLAIN CRAM-MD5")], false),
        (vec![asked(0x0b)], vec![said(0x0b, targets::VERSION.as_bytes())], false),
        (vec![asked(0x0a)], vec![refused(0x0a)], true),
        (vec![login(b"\0ann\0bad"), asked(0x0a)], vec![refused(0x21), refused(0x0a)], true),
        (
            vec![login(b"\0ann\0bad"), login(b"\0ann\0s3c"), asked(0x0a)],
            vec![refused(0x21), said(0x21, b"Authenticated"), said(0x0a, b"")],
            false,
        ),
        (
            vec![login(b"\0ann\0s3c"), asked(0x20), asked(0x0a)],
            vec![said(0x21, b"Authenticated"), said(0x20, b"PLAIN CRAM-MD5"), said(0x0a, b"")],
            false,
        ),
        // A failed login ends the earlier one.
        (
            vec![login(b"\0ann\0s3c"), login(b"\0ann\0bad"), asked(0x0a)],
            vec![said(0x21, b"Authenticated"), refused(0x21), refused(0x0a)],
            true,
        ),
        (
            vec![packet(0x80, 0x21, 0, 1, 0, [b"", b"CRAM-MD5", b"ann s3c"])],
            vec![refused(0x21)],
            false,
        ),
    ];
    for io in IoMode::available() {
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

/// CRAM-MD5: a challenge, and no password on the wire.
#[test]
fn a_challenge_must_be_answered() {
    let ask = |op, message: &[u8]| packet(0x80, op, 0, 1, 0, [b"", b"CRAM-MD5", message]);
    let refused = |op| packet(0x81, op, 0x20, 1, 0, [b"", b"", b"Auth failure."]);
    let (_server, target) = guarded(IoMode::Events);
    let challenge = || {
        let asked = target.exchange(&ask(0x21, b""), usize::MAX, false);
        assert_eq!(asked[..8], [0x81, 0x21, 0, 0, 0, 0, 0, 0x21], "{}", asked.escape_ascii());
        asked[24..].to_vec()
    };
    let first = challenge();
    assert!(first.starts_with(b"<") && first.ends_with(b">") && first != challenge());
    let wrong = [ask(0x21, b""), ask(0x22, b"ann 00"), ask(0x22, b"ann 00")].concat();
    let replies = target.exchange(&wrong, usize::MAX, false);
    assert!(replies.ends_with(&refused(0x22).repeat(2)), "{}", replies.escape_ascii());
    assert_eq!(target.exchange(&ask(0x22, b"ann 00"), usize::MAX, false), refused(0x22));
}

#[test]
fn a_server_that_asks_nobody_knows_no_login() {
    let (_server, target) = embedded(IoMode::Events);
    let login = packet(0x80, 0x21, 0, 1, 0, [b"", b"PLAIN", b"\0ann\0s3c"]);
    let unknown = packet(0x81, 0x21, 0x81, 1, 0, [b"", b"", b"Unknown command"]);
    assert_eq!(target.exchange(&login, usize::MAX, false), unknown);
}

/// With `-B ascii` the first byte decides nothing.
#[test]
fn a_server_of_text_takes_a_packet_for_text() {
    let (_memcached, judge) = memcached_with(&["-B", "ascii"]);
    let settings = Settings { protocol: Protocol::Text, ..settings(IoMode::Events) };
    let (_server, ours) = serving(State::new(settings, targets::VERSION));
    for target in [&judge, &ours] {
        let said = target.exchange(b"\x80mn x\r\nmn\r\n", usize::MAX, false);
        assert_eq!(said.escape_ascii().to_string(), r"ERROR\r\nMN\r\n");
    }
}
