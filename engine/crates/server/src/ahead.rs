//! Requests that are here already are read some at a time, before the first of them is answered, so
//! that what they ask for is on the way from memory while others are: first the parts of the table
//! that say where their items are, then the items.

use cachemark_protocol::binary::request::{HEADER_BYTES, Header};
use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};
use cachemark_storage::{Lookup, Store};

/// So many requests at a time: as many as a processor has reads under way, and no more.
const ROOM: usize = 8;

/// A request as its protocol reads it, as far as must be known of it ahead.
pub trait Request<'a>: Copy {
    /// In place of one that is not there.
    const NONE: Self;

    /// The request at the beginning of these bytes, of which there is one at least.
    fn read(bytes: &'a [u8]) -> Self;

    /// The key that it names first.
    fn key(&self) -> Option<&'a [u8]>;

    /// Its length with all data, where that can be told.
    fn bytes(&self) -> Option<usize>;
}

/// A request that was read.
#[derive(Clone, Copy)]
pub struct Coming<'a, R> {
    /// Where it begins in the input.
    at: usize,
    pub request: R,
    /// Its key, and what is known of it.
    pub lookup: Option<Lookup<'a>>,
}

/// The requests that were read, and whose turn it is.
pub struct Ahead<'a, R> {
    input: &'a [u8],
    store: &'a Store,
    read: [Coming<'a, R>; ROOM],
    count: usize,
    next: usize,
}

impl<'a, R: Request<'a>> Ahead<'a, R> {
    pub fn new(input: &'a [u8], store: &'a Store) -> Ahead<'a, R> {
        let read = [Coming { at: 0, request: R::NONE, lookup: None }; ROOM];
        Ahead { input, store, read, count: 0, next: 0 }
    }

    /// The request at `from`, whose turn it is: inside the input.
    #[inline]
    pub fn turn_to(&mut self, from: usize) -> &Coming<'a, R> {
        // It may not be the one that was expected: data that was to follow is dropped, or a request
        // could not be carried out whole.
        if self.next == self.count || self.read[self.next].at != from {
            self.read_from(from);
        }
        self.next += 1;
        &self.read[self.next - 1]
    }

    #[inline]
    fn read_from(&mut self, from: usize) {
        let mut at = from;
        (self.count, self.next) = (0, 0);
        for coming in &mut self.read {
            let Some(rest) = self.input.get(at..).filter(|rest| !rest.is_empty()) else { break };
            coming.at = at;
            coming.request = R::read(rest);
            coming.lookup = coming.request.key().map(|key| self.store.prefetch(key));
            self.count += 1;
            at = coming.request.bytes().map_or(self.input.len(), |bytes| at + bytes);
        }
        for coming in &mut self.read[..self.count] {
            if let Some(lookup) = &mut coming.lookup {
                lookup.prefetch_item();
            }
        }
    }
}

impl<'a> Request<'a> for Parsed<'a> {
    const NONE: Parsed<'a> = Parsed::Incomplete;

    #[inline]
    fn read(bytes: &'a [u8]) -> Parsed<'a> {
        parse(bytes)
    }

    #[inline]
    fn key(&self) -> Option<&'a [u8]> {
        match self {
            Parsed::Command(Command::Get { keys, .. }, _) => keys.peek(),
            Parsed::Command(Command::Meta(request), _) => Some(request.key),
            Parsed::Command(Command::Store(store), _) => Some(store.key),
            _ => None,
        }
    }

    #[inline]
    fn bytes(&self) -> Option<usize> {
        match self {
            Parsed::Command(Command::Meta(request), line) if request.verb == MetaVerb::Set => {
                Some(line + request.length as usize + 2)
            }
            Parsed::Command(Command::Store(store), line) => Some(line + store.length as usize + 2),
            Parsed::Command(_, line) => Some(*line),
            Parsed::Refused(..) | Parsed::Incomplete | Parsed::TooLong => None,
        }
    }
}

/// The head of a request of the binary protocol; `None` where it is not whole, or is none.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    pub header: Option<Header>,
    key: Option<&'a [u8]>,
}

impl<'a> Request<'a> for Head<'a> {
    const NONE: Head<'a> = Head { header: None, key: None };

    #[inline]
    fn read(bytes: &'a [u8]) -> Head<'a> {
        let header = Header::read(bytes);
        let key = header.and_then(|header| header.key(&bytes[HEADER_BYTES..]));
        Head { header, key }
    }

    #[inline]
    fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    #[inline]
    fn bytes(&self) -> Option<usize> {
        self.header.map(|header| HEADER_BYTES + header.body_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the requests begin that are known at each turn, and whether their keys are.
    fn turns(input: &[u8], begins: &[usize]) -> Vec<Vec<(usize, bool)>> {
        let store = Store::new(1 << 20);
        let mut ahead = Ahead::<Parsed<'_>>::new(input, &store);
        let mut look = |from: &usize| {
            let now = *ahead.turn_to(*from);
            assert_eq!(now.at, *from);
            let known = &ahead.read[ahead.next - 1..ahead.count];
            known.iter().map(|coming| (coming.at, coming.lookup.is_some())).collect()
        };
        begins.iter().map(&mut look).collect()
    }

    #[test]
    fn requests_are_read_some_at_a_time() {
        let input = b"get a\r\nset b 0 0 3\r\nget\r\nmg c v\r\nmn\r\nget d\r\nge";
        let all = [(0, true), (7, true), (25, true), (33, false), (37, true), (44, false)];
        for (turn, known) in turns(input, &all.map(|(at, _)| at)).iter().enumerate() {
            assert_eq!(known, &all[turn..]);
        }
        let many = b"get a\r\n".repeat(ROOM + 3);
        let begins: Vec<usize> = (0..ROOM + 3).map(|n| n * 7).collect();
        let known: Vec<usize> = turns(&many, &begins).iter().map(Vec::len).collect();
        let expected: Vec<usize> = (1..=ROOM).rev().chain((1..=3).rev()).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn what_comes_otherwise_is_read_anew() {
        let input = b"set b 0 0 9999999\r\nget a\r\nget b\r\n";
        assert_eq!(turns(input, &[0]), [vec![(0, true)]]);
        let refused = turns(b"get\r\nget a\r\nget b\r\n", &[0, 5, 12]);
        assert_eq!(refused, [vec![(0, false)], vec![(5, true), (12, true)], vec![(12, true)]]);
        // The same request again: it could not be carried out whole.
        assert_eq!(turns(input, &[19, 19])[1], [(19, true), (26, true)]);
    }

    #[test]
    fn keys_of_binary_requests_are_found() {
        let mut get = vec![0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        get.resize(HEADER_BYTES, 0);
        assert_eq!(Head::read(&get).key(), None);
        get.push(b'k');
        let head = Head::read(&get);
        assert_eq!((head.key(), head.bytes()), (Some(&b"k"[..]), Some(get.len())));
    }
}
