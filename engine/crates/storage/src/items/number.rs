//! The numbers of `incr` and `decr` inside values.

/// The number in a value, as C's strtoull reads it, which memcached uses: blanks, an optional plus, digits,
/// then the end, a blank or a NUL.
pub fn parse(value: &[u8]) -> Option<u64> {
    let begin = value.iter().position(|byte| !is_blank(*byte))?;
    let rest = value[begin..].strip_prefix(b"+").unwrap_or(&value[begin..]);
    let ends = |byte: &u8| *byte == 0 || is_blank(*byte);
    let digits = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let number = digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    });
    number.filter(|_| !digits.is_empty())
}

/// C's isspace, which includes the vertical tab.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// A value of at least this length, with the number at its beginning, as memcached writes it.
pub fn padded(digits: &[u8], length: usize) -> Vec<u8> {
    let mut value = vec![0; length.max(digits.len())];
    overwrite(&mut value, digits);
    value
}

/// Overwrite a value that is at least as long as the number. Spaces fill the rest, as memcached does.
pub fn overwrite(value: &mut [u8], digits: &[u8]) {
    let (number, rest) = value.split_at_mut(digits.len());
    number.copy_from_slice(digits);
    rest.fill(b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_memcached_reads_them() {
        assert_eq!(parse(b"12"), Some(12));
        assert_eq!(parse(b" 12"), Some(12));
        assert_eq!(parse(b"12 "), Some(12));
        assert_eq!(parse(b"+12\0x"), Some(12));
        assert_eq!(parse(b"\x0b12\x0b"), Some(12));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
        for value in [
            &b""[..],
            b" ",
            b"\0",
            b" \0",
            b"+",
            b"++1",
            b"x",
            b"-1",
            b"1x",
            b"111111111111111111111",
        ] {
            assert_eq!(parse(value), None);
        }
    }

    #[test]
    fn a_shorter_number_keeps_the_length() {
        let mut value = *b"1000";
        overwrite(&mut value, b"9");
        assert_eq!(&value, b"9   ");
        overwrite(&mut value, b"1000");
        assert_eq!(&value, b"1000");
    }
}
