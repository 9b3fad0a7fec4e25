//! Bytes that are written again and again: a message, as often as it is owed.

use std::io::{self, Write};

/// At least so many bytes are there to be written in one call.
const CHUNK_BYTES: usize = 64 * 1024;

/// A message repeated, so that any number of them can be written from anywhere inside one.
pub struct RepeatedBytes {
    bytes: Vec<u8>,
    period: usize,
}

/// How far one connection has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    at: usize,
    owed_bytes: usize,
}

impl Cursor {
    /// In front of the n-th message of a cycle's period, of so many bytes each.
    pub fn at(message: usize, message_bytes: usize) -> Cursor {
        Cursor { at: message * message_bytes, owed_bytes: 0 }
    }

    pub fn add_owed(&mut self, bytes: usize) {
        self.owed_bytes += bytes;
    }
}

impl RepeatedBytes {
    /// Of a message, or of several one after the other; not empty.
    pub fn of(message: &[u8]) -> RepeatedBytes {
        let times = CHUNK_BYTES.div_ceil(message.len()) + 1;
        RepeatedBytes { bytes: message.repeat(times), period: message.len() }
    }

    /// Write what is owed until all is written or no more fits: false in the latter case.
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

    /// Takes so many bytes at a time, and blocks after each other write.
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
    fn each_message_is_written_whole_however_it_is_cut() {
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
    fn a_place_may_be_any_message_of_the_period() {
        let cycle = RepeatedBytes::of(b"ab12");
        let mut cursor = Cursor::at(1, 2);
        cursor.add_owed(6);
        let mut out = Vec::new();
        assert!(cycle.write(&mut cursor, &mut out).expect("no error"));
        assert_eq!(out, b"12ab12");
    }
}
