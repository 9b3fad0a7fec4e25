//! Numbers as C reads them: only the digits at the beginning count.

/// atoi(3), without its overflow.
pub fn integer(text: &str) -> i64 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    sign * digits
        .fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')))
}

/// atof(3), for decimal numbers.
pub fn decimal(text: &str) -> f64 {
    let text = text.trim_start();
    let ends = (1..=text.len()).rev().filter(|end| text.is_char_boundary(*end));
    let mut numbers = ends.filter_map(|end| text[..end].parse().ok());
    numbers.find(|number: &f64| number.is_finite()).unwrap_or(0.0)
}

/// A number with k or m behind it, as `-I` takes it.
pub fn size(text: &str) -> i64 {
    let unit = match text.bytes().last() {
        Some(b'k' | b'K') => 1 << 10,
        Some(b'm' | b'M') => 1 << 20,
        _ => 1,
    };
    integer(text).saturating_mul(unit)
}

/// A number that fits into 32 bits.
pub fn unsigned(text: &str) -> Option<u32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, number) in [("12", 12), (" -3x", -3), ("+4", 4), ("", 0), ("x", 0), ("1.5", 1)] {
            assert_eq!(integer(text), number, "{text:?}");
        }
        for (text, number) in [("1.25", 1.25), ("2x", 2.0), ("", 0.0), ("x", 0.0), ("1e2y", 100.0)]
        {
            assert_eq!(decimal(text), number, "{text:?}");
        }
        for (text, bytes) in [("1024", 1024), ("2k", 2048), ("3M", 3 << 20), ("m", 0)] {
            assert_eq!(size(text), bytes, "{text:?}");
        }
    }
}
