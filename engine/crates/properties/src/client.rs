//! Replies as a client reads them: a reply is whole or not there, wherever the bytes are cut, and
//! what is no reply does not become one when more comes.

use std::fmt::Debug;

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::{binary, meta, text};

type Parsed<R> = Result<Option<(R, usize)>, Violation>;

/// A protocol whose replies a client reads.
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

/// Read one reply after the other, each of them cut at every place.
pub fn whole_or_not_there<C: Codec>(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let parsed = C::parse(rest);
        let Ok(Some((_, length))) = parsed else {
            return never_there::<C>(rest, parsed.is_err());
        };
        assert!((1..=rest.len()).contains(&length), "{length} of {} bytes", rest.len());
        for cut in 0..length {
            assert_eq!(C::parse(&rest[..cut]), Ok(None), "{}", rest[..cut].escape_ascii());
        }
        assert_eq!(C::parse(&rest[..length]), parsed, "what follows is of no matter");
        rest = &rest[length..];
    }
}

/// There is no whole reply in these bytes, and none in less of them; what is refused stays so.
fn never_there<C: Codec>(rest: &[u8], refused: bool) {
    let mut before = false;
    for cut in 0..=rest.len() {
        let now = match C::parse(&rest[..cut]) {
            Ok(None) => false,
            Err(Violation) => true,
            Ok(Some(reply)) => panic!("{reply:?} of {}", rest[..cut].escape_ascii()),
        };
        assert!(now || !before, "no reply, and then perhaps: {}", rest[..cut].escape_ascii());
        before = now;
    }
    assert_eq!(before, refused);
}
