//! Bytes that are written again and again: a message, as often as it is owed.

use std::io::{self, Write};

/// At least so many bytes are there to be written in one call.
const CHUNK_BYTES: usize = 64 * 1024;

/// A message repeated, so that any number of them can be written from anywhere inside one.
pub struct Cycle {
    bytes: Vec<u8>,
    period: usize,
}

/// How far one connection has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    at: usize,
    owed: usize,
}

impl Place {
    /// In front of the n-th message of a cycle's period, of so many bytes each.
    pub fn at(message: usize, message_bytes: usize) -> Place {
        Place { at: message * message_bytes, owed: 0 }
    }

    pub fn owe(&mut self, bytes: usize) {
        self.owed += bytes;
    }
}

impl Cycle {
    /// Of a message, or of several one after the other; not empty.
    pub fn of(message: &[u8]) -> Cycle {
        let times = CHUNK_BYTES.div_ceil(message.len()) + 1;
        Cycle { bytes: message.repeat(times), period: message.len() }
    }

    /// Write what is owed until all is written or no more fits: false in the latter case.
    #[inline]
    pub fn write(&self, place: &mut Place, mut out: impl Write) -> io::Result<bool> {
        while place.owed > 0 {
            let end = self.bytes.len().min(place.at + place.owed);
            match out.write(&self.bytes[place.at..end]) {
                Ok(written) => {
                    place.owed -= written;
                    place.at = (place.at + written) % self.period;
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
            let cycle = Cycle::of(b"abc");
            let mut slow = Slow { taken: vec![], bytes, blocks: false };
            let mut place = Place::default();
            for owed in [3, 6, 3000] {
                place.owe(owed);
                while !cycle.write(&mut place, &mut slow).expect("no error") {}
            }
            assert_eq!(slow.taken, b"abc".repeat(1003), "{bytes} at a time");
            assert_eq!(place.owed, 0);
        }
    }

    #[test]
    fn a_place_may_be_any_message_of_the_period() {
        let cycle = Cycle::of(b"ab12");
        let mut place = Place::at(1, 2);
        place.owe(6);
        let mut out = Vec::new();
        assert!(cycle.write(&mut place, &mut out).expect("no error"));
        assert_eq!(out, b"12ab12");
    }
}
