//! Lookahead over the requests that have arrived already: a few are parsed before the first of them is carried
//! out, and what they will read is prefetched into the processor's caches, first the buckets of the table,
//! then the items. A request that arrives alone skips this.

use cachemark_protocol::binary::request::{HEADER_BYTES, Header};
use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};
use cachemark_storage::{Lookup, Store};

/// How many requests are parsed at a time: about as many as a processor has loads in flight.
const DEPTH: usize = 8;

/// A parsed request of one of the protocols, as far as the lookahead has to know it.
pub trait Request<'a>: Copy {
    /// A placeholder where there is no request.
    const NONE: Self;

    /// Parse the request at the beginning of these bytes, of which there is at least one.
    fn parse(bytes: &'a [u8]) -> Self;

    /// Its first key.
    fn key(&self) -> Option<&'a [u8]>;

    /// Its length with its data; `None` if it is not known.
    fn length(&self) -> Option<usize>;
}

/// A request that was parsed.
#[derive(Clone, Copy)]
pub struct ParsedRequest<'a, R> {
    /// Where it begins in the input.
    offset: usize,
    pub parsed: R,
    /// The prefetched lookup of its first key.
    pub lookup: Option<Lookup<'a>>,
}

impl<'a, R: Request<'a>> ParsedRequest<'a, R> {
    /// The request that is the whole input; `None` if there are more, or if it is not complete.
    #[inline]
    pub fn alone(input: &'a [u8]) -> Option<ParsedRequest<'a, R>> {
        let parsed = R::parse(input);
        let whole = parsed.length() == Some(input.len());
        whole.then_some(ParsedRequest { offset: 0, parsed, lookup: None })
    }
}

/// The requests that were parsed, and which of them is next.
pub struct Lookahead<'a, R> {
    input: &'a [u8],
    store: &'a Store,
    requests: [ParsedRequest<'a, R>; DEPTH],
    count: usize,
    next: usize,
}

impl<'a, R: Request<'a>> Lookahead<'a, R> {
    pub fn new(input: &'a [u8], store: &'a Store) -> Lookahead<'a, R> {
        let requests = [ParsedRequest { offset: 0, parsed: R::NONE, lookup: None }; DEPTH];
        Lookahead { input, store, requests, count: 0, next: 0 }
    }

    /// The request at `offset`, which is inside the input.
    #[inline]
    pub fn request_at(&mut self, offset: usize) -> &ParsedRequest<'a, R> {
        // It is not always the next one that was parsed: a request may have been refused and its data
        // swallowed, or it may be carried out again because it was not completed.
        if self.next == self.count || self.requests[self.next].offset != offset {
            self.parse_from(offset);
        }
        self.next += 1;
        &self.requests[self.next - 1]
    }

    #[inline]
    fn parse_from(&mut self, offset: usize) {
        let mut at = offset;
        (self.count, self.next) = (0, 0);
        for request in &mut self.requests {
            let Some(rest) = self.input.get(at..).filter(|rest| !rest.is_empty()) else { break };
            request.offset = at;
            request.parsed = R::parse(rest);
            request.lookup = request.parsed.key().map(|key| self.store.prefetch(key));
            self.count += 1;
            at = request.parsed.length().map_or(self.input.len(), |bytes| at + bytes);
        }
        for request in &mut self.requests[..self.count] {
            if let Some(lookup) = &mut request.lookup {
                lookup.prefetch_item();
            }
        }
    }
}

impl<'a> Request<'a> for Parsed<'a> {
    const NONE: Parsed<'a> = Parsed::Incomplete;

    #[inline(always)]
    fn parse(bytes: &'a [u8]) -> Parsed<'a> {
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
    fn length(&self) -> Option<usize> {
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

/// The header and the key of a binary request; `None` if they are not complete, or malformed.
#[derive(Clone, Copy)]
pub struct BinaryHead<'a> {
    pub header: Option<Header>,
    key: Option<&'a [u8]>,
}

impl<'a> Request<'a> for BinaryHead<'a> {
    const NONE: BinaryHead<'a> = BinaryHead { header: None, key: None };

    #[inline]
    fn parse(bytes: &'a [u8]) -> BinaryHead<'a> {
        let header = Header::parse(bytes);
        let key = header.and_then(|header| header.key(&bytes[HEADER_BYTES..]));
        BinaryHead { header, key }
    }

    #[inline]
    fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    #[inline]
    fn length(&self) -> Option<usize> {
        self.header.map(|header| HEADER_BYTES + header.body_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each request, the offsets of the requests that are parsed by then, and whether each has a lookup.
    fn parsed_at(input: &[u8], begins: &[usize]) -> Vec<Vec<(usize, bool)>> {
        let store = Store::new(1 << 20);
        let mut lookahead = Lookahead::<Parsed<'_>>::new(input, &store);
        let mut look = |from: &usize| {
            let now = *lookahead.request_at(*from);
            assert_eq!(now.offset, *from);
            let known = &lookahead.requests[lookahead.next - 1..lookahead.count];
            known.iter().map(|request| (request.offset, request.lookup.is_some())).collect()
        };
        begins.iter().map(&mut look).collect()
    }

    #[test]
    fn requests_are_parsed_a_few_at_a_time() {
        let input = b"get a\r\nset b 0 0 3\r\nget\r\nmg c v\r\nmn\r\nget d\r\nge";
        let all = [(0, true), (7, true), (25, true), (33, false), (37, true), (44, false)];
        for (turn, known) in parsed_at(input, &all.map(|(at, _)| at)).iter().enumerate() {
            assert_eq!(known, &all[turn..]);
        }
        let many = b"get a\r\n".repeat(DEPTH + 3);
        let begins: Vec<usize> = (0..DEPTH + 3).map(|n| n * 7).collect();
        let known: Vec<usize> = parsed_at(&many, &begins).iter().map(Vec::len).collect();
        let expected: Vec<usize> = (1..=DEPTH).rev().chain((1..=3).rev()).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn an_unexpected_request_is_parsed_again() {
        let input = b"set b 0 0 9999999\r\nget a\r\nget b\r\n";
        assert_eq!(parsed_at(input, &[0]), [vec![(0, true)]]);
        let refused = parsed_at(b"get\r\nget a\r\nget b\r\n", &[0, 5, 12]);
        assert_eq!(refused, [vec![(0, false)], vec![(5, true), (12, true)], vec![(12, true)]]);
        // The same request again, because it was not completed.
        assert_eq!(parsed_at(input, &[19, 19])[1], [(19, true), (26, true)]);
    }

    #[test]
    fn keys_of_binary_requests_are_found() {
        let mut get = vec![0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        get.resize(HEADER_BYTES, 0);
        assert_eq!(BinaryHead::parse(&get).key(), None);
        get.push(b'k');
        let head = BinaryHead::parse(&get);
        assert_eq!((head.key(), head.length()), (Some(&b"k"[..]), Some(get.len())));
    }
}
