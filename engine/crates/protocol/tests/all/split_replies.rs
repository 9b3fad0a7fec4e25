//! The three reply parsers of a client, with nearly valid replies that are split at every byte.

use cachemark_properties::client::{Binary, Meta, Text, complete_or_incomplete};
use proptest::collection::vec;
use proptest::prelude::*;

const TEXT: &str = "(VALUE [a-z\n]{0,3} [0-9]{0,11} [0-9]{0,2}( [0-9]{1,21})?\r\n[a-c]{0,3}\r\n\
                    |END|STORED|[0-9]{1,21}|SERVER_ERROR x|ERROR)?(\r\n|\n)?";
const META: &str = "(VA [0-9]{0,2}|HD|EN|NS|MN|VERSION 1|CLIENT_ERROR x)?( [a-zO!][a-z0-9]{0,5}){0,4} ?\
                    (\r\n|\n)?([a-c]{1,3}\r\n)?";

/// Replies of this form, and some random bytes.
fn replies(near: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => near.prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..60),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Packets, some with a wrong length in the header.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let parts = (0_u8..4, 0_u8..6, 0_u8..20, prop_oneof![9 => Just(0_u8), 1 => any::<u8>()]);
    let packet = (any::<u8>(), parts).prop_map(|(opcode, (key, extras, value, wrong))| {
        let body = key + extras + value;
        let length = body.wrapping_add(wrong);
        let mut out = vec![0x81, opcode, 0, key, extras, 0, 0, 0, 0, 0, 0, length];
        out.resize(24 + usize::from(body), opcode);
        out
    });
    vec(packet, 0..5).prop_map(|packets| packets.concat())
}

proptest! {
    #[test]
    fn text_replies_are_complete_or_incomplete(bytes in replies(TEXT)) {
        complete_or_incomplete::<Text>(&bytes);
    }

    #[test]
    fn meta_replies_are_complete_or_incomplete(bytes in replies(META)) {
        complete_or_incomplete::<Meta>(&bytes);
    }

    #[test]
    fn binary_replies_are_complete_or_incomplete(packets in packets(), bytes in vec(any::<u8>(), 0..30)) {
        complete_or_incomplete::<Binary>(&[packets, bytes].concat());
    }
}

#[test]
fn long_lines_are_refused_wherever_they_are_split() {
    for length in 2040..2060 {
        for head in ["VALUE ", "VALUE k ", "VA 1 ", "SERVER_ERROR ", "7"] {
            for end in [&b"\r\n7\r\n"[..], b""] {
                let mut bytes = head.as_bytes().to_vec();
                bytes.resize(length, b'7');
                bytes.extend_from_slice(end);
                complete_or_incomplete::<Text>(&bytes);
                complete_or_incomplete::<Meta>(&bytes);
            }
        }
    }
}
