//! Words and numbers of a line of the text protocols.

/// The words of a line, which are separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub fn of(line: &'a [u8]) -> Words<'a> {
        Words(line)
    }

    /// The rest of the line.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        // Most meta flags are one letter behind one space.
        if let [b' ', letter, ref rest @ ..] = *self.0
            && letter != b' '
            && rest.first().is_none_or(|byte| *byte == b' ')
        {
            let word = &self.0[1..2];
            self.0 = rest;
            return Some(word);
        }
        self.any()
    }
}

impl<'a> Words<'a> {
    fn any(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|byte| *byte != b' ')?;
        let rest = &self.0[begin..];
        let (word, rest) = rest.split_at(word_bytes(rest));
        self.0 = rest;
        Some(word)
    }
}

/// The position of the first space, or the length.
#[inline]
fn word_bytes(bytes: &[u8]) -> usize {
    first(bytes, |chunk| below(chunk ^ u64::from_le_bytes([b' '; 8]), 1)).unwrap_or(bytes.len())
}

/// The position of the first space or control character.
#[inline]
pub fn first_blank(bytes: &[u8]) -> Option<usize> {
    first(bytes, |chunk| below(chunk, b' ' + 1))
}

/// The position of the first control character.
#[inline]
pub fn first_control(bytes: &[u8]) -> Option<usize> {
    first(bytes, |chunk| below(chunk, b' '))
}

/// The position of the first byte that `find` finds, eight bytes at a time. For short words this is faster than
/// a library call that selects instructions at run time.
#[inline]
fn first(bytes: &[u8], find: impl Fn(u64) -> u64) -> Option<usize> {
    let find = |chunk: [u8; 8]| {
        let found = find(u64::from_le_bytes(chunk));
        (found != 0).then(|| found.trailing_zeros() as usize / 8)
    };
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (n, chunk) in chunks.iter().enumerate() {
        if let Some(at) = find(*chunk) {
            return Some(n * 8 + at);
        }
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        return find(*last).map(|at| bytes.len() - 8 + at);
    }
    // The padding is no space and no control character.
    let mut chunk = [b'x'; 8];
    chunk[..rest.len()].copy_from_slice(rest);
    find(chunk)
}

/// Set the top bit of the first byte that is below a number of at most 128; later bits are undefined (A. Mycroft,
/// 1987).
#[inline]
fn below(chunk: u64, number: u8) -> u64 {
    chunk.wrapping_sub(u64::from_le_bytes([number; 8])) & !chunk & u64::from_le_bytes([0x80; 8])
}

/// More digits than this are refused, zeros too.
const DIGITS_MAX: usize = 22;

/// A decimal number of 64 bits, as most commands take it: digits alone.
#[inline]
pub fn unsigned(word: &[u8]) -> Option<u64> {
    natural(word).filter(|_| word.len() <= DIGITS_MAX)
}

/// The same for a number that may be negative.
#[inline]
pub fn signed(word: &[u8]) -> Option<i64> {
    match word {
        [b'-', digits @ ..] => natural(digits).and_then(negated),
        digits => natural(digits).and_then(|number| i64::try_from(number).ok()),
    }
    .filter(|_| word.len() <= DIGITS_MAX)
}

/// An exptime of a command other than `set` and its kind: a number of 32 bits, which may be negative.
#[inline]
pub fn exptime(word: &[u8]) -> Option<i64> {
    signed(word).filter(|seconds| i32::try_from(*seconds).is_ok())
}

/// An exptime of `set` and its kind: memcached takes the lowest 32 bits of the number that C parses, so that
/// 4294967295, with which libmemcached means -1, has passed at once.
#[inline]
pub fn stored_exptime(word: &[u8]) -> Option<i64> {
    signed_as_in_c(word).map(|seconds| i64::from(seconds as i32))
}

/// A decimal number of 64 bits, as C's strtoull(3) parses it: from the first byte that is no blank to the next
/// blank or the end of the string. It may have a plus; it may have a minus if the negated number, modulo 2^64, is
/// below 2^63. memcached still reads some numbers so: those before the length of a `set`, and those that options
/// give.
#[inline]
pub fn unsigned_as_in_c(word: &[u8]) -> Option<u64> {
    match c_word(word) {
        [b'+', digits @ ..] => natural(digits),
        [b'-', digits @ ..] => {
            natural(digits).map(u64::wrapping_neg).filter(|number| *number <= i64::MAX as u64)
        }
        digits => natural(digits),
    }
}

/// The same for a number that may be negative (strtoll(3)).
#[inline]
pub fn signed_as_in_c(word: &[u8]) -> Option<i64> {
    match c_word(word) {
        [b'-', digits @ ..] => natural(digits).and_then(negated),
        word => unsigned_as_in_c(word).and_then(|number| i64::try_from(number).ok()),
    }
}

/// The part of a word that C takes for its number.
#[inline]
fn c_word(word: &[u8]) -> &[u8] {
    if first_control(word).is_some() { without_blanks(word) } else { word }
}

#[cold]
fn without_blanks(word: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let begin = word.iter().position(|byte| !is_blank(byte)).unwrap_or(word.len());
    let word = &word[begin..];
    let end = word.iter().position(|byte| *byte == 0 || is_blank(byte)).unwrap_or(word.len());
    &word[..end]
}

#[inline]
fn negated(number: u64) -> Option<i64> {
    0_i64.checked_sub_unsigned(number)
}

/// A decimal number of 64 bits, without a sign.
pub(crate) fn decimal(field: Option<&[u8]>) -> Option<u64> {
    let field = field.filter(|field| !field.is_empty() && field.len() <= 20)?;
    field.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A number with so few digits always fits 64 bits.
const DIGITS_SAFE: usize = 19;

#[inline]
fn natural(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let (safe, rest) = digits.split_at(digits.len().min(DIGITS_SAFE));
    let mut sum = 0_u64;
    for byte in safe {
        sum = sum * 10 + u64::from(digit(*byte)?);
    }
    rest.iter().try_fold(sum, |sum, byte| sum.checked_mul(10)?.checked_add(digit(*byte)?.into()))
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    Some(byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_what_is_between_spaces(
            line in proptest::collection::vec(prop_oneof![Just(b' '), any::<u8>()], 0..60),
        ) {
            let expected = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            prop_assert!(Words::of(&line).eq(expected));
        }

        #[test]
        fn blanks_are_found(line in proptest::collection::vec(any::<u8>(), 0..40)) {
            let expected = line.iter().position(|byte| *byte <= b' ');
            prop_assert_eq!(first_blank(&line), expected);
            let expected = line.iter().position(|byte| *byte < b' ');
            prop_assert_eq!(first_control(&line), expected);
        }

        #[test]
        fn numbers_are_parsed_as_the_standard_library_parses_them(text in "[+-]?[0-9]{1,24}|[0-9/:+-]{1,6}") {
            let word = text.as_bytes();
            prop_assert_eq!(signed_as_in_c(word), text.parse().ok());
            if !text.starts_with('-') {
                prop_assert_eq!(unsigned_as_in_c(word), text.parse().ok());
            }
        }

        #[test]
        fn most_commands_take_no_plus_and_not_too_many_digits(text in "[+-]?[0-9]{1,24}|[0-9/:+-]{1,6}") {
            let word = text.as_bytes();
            let taken = !text.starts_with('+') && text.len() <= DIGITS_MAX;
            prop_assert_eq!(signed(word), text.parse().ok().filter(|_| taken));
            let taken = taken && !text.starts_with('-');
            prop_assert_eq!(unsigned(word), text.parse().ok().filter(|_| taken));
        }
    }

    #[test]
    fn a_minus_is_parsed_as_c_parses_it() {
        let numbers = [("-0", Some(0)), ("-1", None), ("-9223372036854775808", None)];
        let wrapped = [("-18446744073709551615", Some(1)), ("-18446744073709551616", None)];
        for (text, number) in numbers.into_iter().chain(wrapped) {
            assert_eq!(unsigned_as_in_c(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn blanks_around_a_number_are_skipped_as_in_c() {
        for text in ["\t7", " \x0b+7\r", "7\t8", "7\0x", "\t-18446744073709551609 "] {
            assert_eq!(unsigned_as_in_c(text.as_bytes()), Some(7), "{text}");
        }
        assert_eq!(signed_as_in_c(b"\t-7\t"), Some(-7));
        for text in ["\t", "7x", "\0", "\x017"] {
            assert_eq!(unsigned_as_in_c(text.as_bytes()), None, "{text}");
        }
    }
}
