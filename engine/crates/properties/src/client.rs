//! Replies as a client reads them: a reply is whole or not there, wherever the bytes are cut, and
//! what is no reply does not become one when more comes.

use std::fmt::Debug;

use cachemark_protocol::reply::Violation;
use cachemark_protocol::{binary_client, meta_client, reply};

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
    type Reply<'a> = reply::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<reply::Reply<'_>> {
        reply::parse(bytes)
    }
}

impl Codec for Meta {
    type Reply<'a> = meta_client::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<meta_client::Reply<'_>> {
        meta_client::parse(bytes)
    }
}

impl Codec for Binary {
    type Reply<'a> = binary_client::Reply<'a>;

    fn parse(bytes: &[u8]) -> Parsed<binary_client::Reply<'_>> {
        binary_client::parse(bytes)
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
