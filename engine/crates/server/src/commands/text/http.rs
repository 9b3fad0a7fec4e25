//! HTTP on a memcached port: a web page can make a browser send it, so nothing in it may be carried out.

/// Whether a line that is no command is the first line of an HTTP request: its last word is the protocol's
/// version. memcached closes such a connection, without a reply.
pub fn speaks(line: &[u8]) -> bool {
    line.trim_ascii_end()
        .rsplit(|byte| *byte == b' ')
        .next()
        .is_some_and(|word| word.starts_with(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use super::speaks;

    #[test]
    fn the_last_word_decides() {
        for line in ["GET / HTTP/1.1\r\n", "POST /x HTTP/1.0\r\n", "FOO HTTP/2\n", "HTTP/1.1\r\n"] {
            assert!(speaks(line.as_bytes()), "{line}");
        }
        for line in ["GET /\r\n", "HTTP/1.1 GET\r\n", "POST http/1.1\r\n", "\r\n", ""] {
            assert!(!speaks(line.as_bytes()), "{line}");
        }
    }
}
