//! The keys of a get.

use crate::limits::KEY_BYTES_MAX;
use crate::words::Words;

/// One or more keys, each of 1 to 250 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// The next key is parsed already: most gets have only one.
    next: Option<&'a [u8]>,
    rest: Words<'a>,
}

impl<'a> Keys<'a> {
    #[inline]
    pub(crate) fn one(key: &'a [u8]) -> Keys<'a> {
        Keys { next: Some(key), rest: Words::of(b"") }
    }

    /// Parse the keys. `None` if there is none, or if one is too long.
    #[inline]
    pub(crate) fn parse(mut words: Words<'a>) -> Option<Keys<'a>> {
        let fits = |key: &&[u8]| key.len() <= KEY_BYTES_MAX;
        let next = Some(words.next().filter(fits)?);
        let rest = words;
        words.all(|key| fits(&key)).then_some(Keys { next, rest })
    }
}

impl<'a> Keys<'a> {
    /// The next key, which is not consumed.
    #[inline]
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.next
    }

    /// The next key, if it is the last.
    #[inline]
    pub fn only(&self) -> Option<&'a [u8]> {
        self.next.filter(|_| self.rest.rest().is_empty())
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let key = self.next?;
        self.next = self.rest.next();
        Some(key)
    }
}
