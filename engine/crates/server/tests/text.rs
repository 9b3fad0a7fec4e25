//! The text cases of conformance/server against the embedded server in both I/O modes and against
//! the real memcached, which is the judge.

mod targets;

use cachemark_server::IoMode;
use serde::Deserialize;
use targets::{Target, embedded, expand, memcached, table};

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
    table::<Table>("text.toml").case
}

fn check(target: &Target, case: &Case, piece: usize) {
    target.exchange(b"flush_all\r\n", usize::MAX, false);
    let reply = match &case.reply_1_6_18 {
        Some(reply) if target.is_1_6_18 => reply,
        _ => &case.reply,
    };
    let expected = expand(&reply.replace("<version>", &target.version));
    let actual = target.exchange(&expand(&case.request), piece, case.closed);
    let shown = without_cas(&actual);
    assert!(
        shown == expected,
        "{}: {} in pieces of {piece}\nexpected {:?}\nactual   {:?}",
        target.address,
        case.name,
        String::from_utf8_lossy(&expected[..expected.len().min(300)]),
        String::from_utf8_lossy(&shown[..shown.len().min(300)]),
    );
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

#[test]
fn the_embedded_server_answers_as_memcached() {
    for io in [IoMode::Blocking, IoMode::Events] {
        let (_server, target) = embedded(io);
        for case in cases() {
            check(&target, &case, usize::MAX);
            // Cut at many places; large requests in larger pieces, to stay quick.
            let piece =
                if case.request.len() < 500 && !case.request.contains('{') { 1 } else { 4001 };
            check(&target, &case, piece);
            check(&target, &case, 7.max(piece));
        }
    }
}

#[test]
fn memcached_agrees_with_the_cases() {
    let (_memcached, target) = memcached();
    for case in cases() {
        check(&target, &case, usize::MAX);
    }
}
