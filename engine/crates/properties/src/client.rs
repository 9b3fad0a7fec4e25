//! The reply parsers of a client: a reply is complete or incomplete, wherever the bytes are split, and invalid
//! bytes do not become valid when more bytes arrive.

use std::fmt::Debug;

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::{binary, meta, text};

type Parsed<R> = Result<Option<(R, usize)>, Violation>;

/// A protocol with a reply parser.
pub trait Codec {
    type Reply<'a>: PartialEq + Debug;

    fn parse(bytes: &[u8]) -> Parsed<Self::Reply<'_>>;
}

pub struct Text;
pub struct Meta;
pub struct Binary;

impl Codec for Text {
    type Reply<'a> = text::reply::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<text::reply::Reply<'_>> {
        text::reply::parse(bytes)
    }
}

impl Codec for Meta {
    type Reply<'a> = meta::client::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<meta::client::Reply<'_>> {
        meta::client::parse(bytes)
    }
}

impl Codec for Binary {
    type Reply<'a> = binary::client::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<binary::client::Reply<'_>> {
        binary::client::parse(bytes)
    }
}

/// Parse one reply after the other, each of them split at every byte.
pub fn complete_or_incomplete<C: Codec>(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let parsed = C::parse(rest);
        let Ok(Some((_, length))) = parsed else {
            return never_complete::<C>(rest, parsed.is_err());
        };
        assert!((1..=rest.len()).contains(&length), "{length} of {} bytes", rest.len());
        for cut in 0..length {
            assert_eq!(C::parse(&rest[..cut]), Ok(None), "{}", rest[..cut].escape_ascii());
        }
        assert_eq!(C::parse(&rest[..length]), parsed, "the bytes behind a reply do not matter");
        rest = &rest[length..];
    }
}

/// No prefix of these bytes is a complete reply, and a refused prefix stays refused.
fn never_complete<C: Codec>(rest: &[u8], refused: bool) {
    let mut before = false;
    for cut in 0..=rest.len() {
        let now = match C::parse(&rest[..cut]) {
            Ok(None) => false,
            Err(Violation) => true,
            Ok(Some(reply)) => panic!("{reply:?} of {}", rest[..cut].escape_ascii()),
        };
        assert!(now || !before, "refused, and then incomplete: {}", rest[..cut].escape_ascii());
        before = now;
    }
    assert_eq!(before, refused);
}
