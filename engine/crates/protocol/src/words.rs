//! What a line of the text protocols is made of: words, and the numbers that some of them are.

use memchr::memchr;

/// The words of a line: runs of anything but spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub fn of(line: &'a [u8]) -> Words<'a> {
        Words(line)
    }

    /// What is left of the line.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|byte| *byte != b' ')?;
        let rest = &self.0[begin..];
        let end = memchr(b' ', rest).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// A decimal number that fits 64 bits.
pub fn unsigned(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

pub fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => unsigned(digits).and_then(|n| i64::try_from(n).ok()).map(|n| -n),
        None => unsigned(word).and_then(|n| i64::try_from(n).ok()),
    }
}
