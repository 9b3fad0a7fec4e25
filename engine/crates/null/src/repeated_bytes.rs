//! Writes the same messages again and again, without building them each time.

use std::io::{self, Write};

/// The minimum number of bytes that one write can send.
const CHUNK_BYTES: usize = 64 * 1024;

/// A message, repeated so often that many copies can be written in one call, from any place inside it.
pub struct RepeatedBytes {
    bytes: Vec<u8>,
    period: usize,
}

/// The place of one connection, and how many bytes it still has to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    at: usize,
    owed_bytes: usize,
}

impl Cursor {
    /// The start of message `message`, if each has `message_bytes`.
    pub fn at(message: usize, message_bytes: usize) -> Cursor {
        Cursor { at: message * message_bytes, owed_bytes: 0 }
    }

    pub fn add_owed(&mut self, bytes: usize) {
        self.owed_bytes += bytes;
    }
}

impl RepeatedBytes {
    /// Repeat a message, or several messages; not empty.
    pub fn of(message: &[u8]) -> RepeatedBytes {
        let times = CHUNK_BYTES.div_ceil(message.len()) + 1;
        RepeatedBytes { bytes: message.repeat(times), period: message.len() }
    }

    /// Write what is owed. False if the socket takes no more.
    #[inline]
    pub fn write(&self, cursor: &mut Cursor, mut out: impl Write) -> io::Result<bool> {
        while cursor.owed_bytes > 0 {
            let end = self.bytes.len().min(cursor.at + cursor.owed_bytes);
            match out.write(&self.bytes[cursor.at..end]) {
                Ok(written) => {
                    cursor.owed_bytes -= written;
                    cursor.at = (cursor.at + written) % self.period;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `bytes` bytes at a time, and blocks after every other write.
    struct Slow {
        taken: Vec<u8>,
        bytes: usize,
        blocks: bool,
    }

    impl Write for &mut Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.blocks = !self.blocks;
            if self.blocks {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(self.bytes);
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_are_complete_for_any_size_of_write() {
        for bytes in [1, 2, 7, 1000, CHUNK_BYTES] {
            let cycle = RepeatedBytes::of(b"abc");
            let mut slow = Slow { taken: vec![], bytes, blocks: false };
            let mut cursor = Cursor::default();
            for owed_bytes in [3, 6, 3000] {
                cursor.add_owed(owed_bytes);
                while !cycle.write(&mut cursor, &mut slow).expect("no error") {}
            }
            assert_eq!(slow.taken, b"abc".repeat(1003), "{bytes} at a time");
            assert_eq!(cursor.owed_bytes, 0);
        }
    }

    #[test]
    fn a_cursor_can_start_at_any_message() {
        let cycle = RepeatedBytes::of(b"ab12");
        let mut cursor = Cursor::at(1, 2);
        cursor.add_owed(6);
        let mut out = Vec::new();
        assert!(cycle.write(&mut cursor, &mut out).expect("no error"));
        assert_eq!(out, b"12ab12");
    }
}
