//! Percent-encoding of keys (RFC 3986, 2.1), in dumps and in log lines.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Append a key. Letters, digits and four other characters stay as they are.
pub fn append_percent_encoded(out: &mut Vec<u8>, key: &[u8]) {
    for byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            let digit = |four: u8| HEX[usize::from(four)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::append_percent_encoded;

    #[test]
    fn only_unreserved_characters_stay() {
        let mut out = Vec::new();
        append_percent_encoded(&mut out, b"aZ9-._~ %#\xc3");
        assert_eq!(out, b"aZ9-._~%20%25%23%C3");
    }
}
