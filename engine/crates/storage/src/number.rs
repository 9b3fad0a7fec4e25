//! Numbers as `incr` and `decr` read and write them inside a value.

/// The number that a value holds: leading spaces, digits, then nothing or a space.
pub fn read(value: &[u8]) -> Option<u64> {
    let begin = value.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let digits = &value[begin..];
    let end = digits.iter().position(u8::is_ascii_whitespace).unwrap_or(digits.len());
    digits[..end].iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The value that takes the place of one of `length` bytes: a shorter number is padded with
/// spaces, as memcached writes it in place.
pub fn write(number: u64, length: usize) -> Vec<u8> {
    let mut value = number.to_string().into_bytes();
    if value.len() < length {
        value.resize(length, b' ');
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_memcached_reads_them() {
        assert_eq!(read(b"12"), Some(12));
        assert_eq!(read(b" 12"), Some(12));
        assert_eq!(read(b"12 "), Some(12));
        assert_eq!(read(b"18446744073709551615"), Some(u64::MAX));
        for value in [&b""[..], b" ", b"x", b"-1", b"1x", b"111111111111111111111"] {
            assert_eq!(read(value), None);
        }
    }

    #[test]
    fn a_shorter_number_keeps_the_length() {
        assert_eq!(write(9, 2), b"9 ");
        assert_eq!(write(100, 2), b"100");
    }
}
