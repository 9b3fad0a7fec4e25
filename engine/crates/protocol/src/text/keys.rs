//! The keys of a get.

use crate::limits::KEY_BYTES_MAX;
use crate::words::Words;

/// At least one, each of 1 to 250 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// Most gets have one key: it is not looked for twice.
    next: Option<&'a [u8]>,
    rest: Words<'a>,
}

impl<'a> Keys<'a> {
    #[inline]
    pub(crate) fn one(key: &'a [u8]) -> Keys<'a> {
        Keys { next: Some(key), rest: Words::of(b"") }
    }

    /// `None` where there is none, or one is too long.
    #[inline]
    pub(crate) fn read(mut words: Words<'a>) -> Option<Keys<'a>> {
        let fits = |key: &&[u8]| key.len() <= KEY_BYTES_MAX;
        let next = Some(words.next().filter(fits)?);
        let rest = words;
        words.all(|key| fits(&key)).then_some(Keys { next, rest })
    }
}

impl<'a> Keys<'a> {
    /// The next one, which stays.
    #[inline]
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.next
    }

    /// The next one, if no other follows.
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
