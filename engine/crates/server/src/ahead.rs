//! Requests that are here already are read before their turn, so that what they ask for is on the way
//! from memory while those before are answered: of the next request its item, of the one behind that
//! the part of the table that says where its item is.

use cachemark_protocol::binary::{HEADER_BYTES, Header};
use cachemark_protocol::meta_request::MetaVerb;
use cachemark_protocol::request::{Command, Step, parse};
use cachemark_storage::{Store, Wanted};

/// A power of two; the request whose turn it is and two behind it.
const ROOM: usize = 4;
const KNOWN: usize = 3;

/// A request as its protocol reads it, with the key it names first, and its length with all data, 0
/// where that cannot be told.
pub struct Reading<'a, R> {
    pub request: R,
    pub key: Option<&'a [u8]>,
    pub bytes: usize,
}

/// A request that was read.
#[derive(Clone, Copy)]
pub struct Coming<'a, R> {
    /// Where it begins in the input.
    at: usize,
    pub request: R,
    /// Its key, where it has been looked ahead at.
    pub wanted: Option<Wanted<'a>>,
}

/// The requests that were read, from the one whose turn it is.
pub struct Ahead<'a, R> {
    input: &'a [u8],
    /// Where the next one begins that is not read yet.
    at: usize,
    ring: [Coming<'a, R>; ROOM],
    first: usize,
    count: usize,
}

impl<'a, R: Copy> Ahead<'a, R> {
    /// `none` is any request.
    pub fn new(input: &'a [u8], none: R) -> Ahead<'a, R> {
        let ring = [Coming { at: 0, request: none, wanted: None }; ROOM];
        Ahead { input, at: 0, ring, first: 0, count: 0 }
    }

    /// The request at `from`, whose turn it is.
    #[inline]
    pub fn turn_to(
        &mut self,
        from: usize,
        read: impl Fn(&'a [u8]) -> Reading<'a, R>,
        store: &Store,
    ) -> &Coming<'a, R> {
        if self.count > 1 && self.ring[(self.first + 1) % ROOM].at == from {
            (self.first, self.count) = ((self.first + 1) % ROOM, self.count - 1);
            self.read_on(&read, store);
        } else {
            // The first of all, or not where it was expected.
            (self.at, self.count) = (from, 0);
            while self.count < KNOWN && self.read_on(&read, store) {}
        }
        if self.count > 1
            && let Some(wanted) = &mut self.ring[(self.first + 1) % ROOM].wanted
        {
            store.warm(wanted);
        }
        &self.ring[self.first]
    }

    /// Read one more; false when there is none.
    #[inline]
    fn read_on(&mut self, read: impl Fn(&'a [u8]) -> Reading<'a, R>, store: &Store) -> bool {
        let Some(rest) = self.input.get(self.at..).filter(|rest| !rest.is_empty()) else {
            return false;
        };
        let Reading { request, key, bytes } = read(rest);
        // The one whose turn it is already is not looked ahead at.
        let wanted = key.filter(|_| self.count > 0).map(|key| store.foresee(key));
        self.ring[(self.first + self.count) % ROOM] = Coming { at: self.at, request, wanted };
        self.count += 1;
        self.at = if bytes == 0 { self.input.len() } else { self.at + bytes };
        true
    }
}

/// Read a request of the text protocol.
#[inline]
pub fn text(bytes: &[u8]) -> Reading<'_, Step<'_>> {
    let request = parse(bytes);
    let (key, bytes) = match &request {
        Step::Command(Command::Get { keys, .. }, line) => ({ *keys }.next(), *line),
        Step::Command(Command::Meta(request), line) => {
            let data = if request.verb == MetaVerb::Set { request.length as usize + 2 } else { 0 };
            (Some(request.key), line + data)
        }
        Step::Command(Command::Store(store), line) => {
            (Some(store.key), line + store.length as usize + 2)
        }
        Step::Command(_, line) => (None, *line),
        Step::Refused(..) | Step::Incomplete | Step::TooLong => (None, 0),
    };
    Reading { request, key, bytes }
}

/// Read a request of the binary protocol, as far as must be known of it ahead.
#[inline]
pub fn binary(bytes: &[u8]) -> Reading<'_, ()> {
    let header = Header::read(bytes);
    let key = header.and_then(|header| header.key(&bytes[HEADER_BYTES..]));
    let bytes = header.map_or(0, |header| HEADER_BYTES + header.body_bytes());
    Reading { request: (), key, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the requests begin that are known at each turn, and whether their keys are.
    fn turns(input: &[u8], begins: &[usize]) -> Vec<Vec<(usize, bool)>> {
        let store = Store::new(1 << 20);
        let mut ahead = Ahead::new(input, Step::Incomplete);
        let mut look = |from: &usize| {
            let now = ahead.turn_to(*from, text, &store);
            assert_eq!(now.at, *from);
            let known = (0..ahead.count).map(|n| &ahead.ring[(ahead.first + n) % ROOM]);
            known.map(|coming| (coming.at, coming.wanted.is_some())).collect()
        };
        begins.iter().map(&mut look).collect()
    }

    #[test]
    fn two_requests_behind_are_known() {
        let input = b"get a\r\nset b 0 0 3\r\nget\r\nmg c v\r\nmn\r\nget d\r\nge";
        let expected = [
            vec![(0, false), (7, true), (25, true)],
            vec![(7, true), (25, true), (33, false)],
            vec![(25, true), (33, false), (37, true)],
            vec![(33, false), (37, true), (44, false)],
            vec![(37, true), (44, false)],
            vec![(44, false)],
        ];
        assert_eq!(turns(input, &[0, 7, 25, 33, 37, 44]), expected);
    }

    #[test]
    fn what_comes_otherwise_is_read_anew() {
        let input = b"set b 0 0 9999999\r\nget a\r\nget b\r\n";
        assert_eq!(turns(input, &[0]), [vec![(0, false)]]);
        let refused = turns(b"get\r\nget a\r\nget b\r\n", &[0, 5, 12]);
        assert_eq!(refused[1..], [vec![(5, false), (12, true)], vec![(12, true)]]);
        // The same request again: it could not be carried out whole.
        assert_eq!(turns(input, &[19, 19])[1], [(19, false), (26, true)]);
    }

    #[test]
    fn keys_of_binary_requests_are_found() {
        let mut get = vec![0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        get.resize(HEADER_BYTES, 0);
        assert_eq!(binary(&get).key, None);
        get.push(b'k');
        assert_eq!((binary(&get).key, binary(&get).bytes), (Some(&b"k"[..]), get.len()));
    }
}
