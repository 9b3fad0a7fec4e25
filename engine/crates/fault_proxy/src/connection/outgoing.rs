//! Bytes on their way to a socket.

use std::collections::VecDeque;
use std::io;

use crate::connection::end::End;

/// The memory of a waiting piece besides its bytes.
const PIECE_BYTES: usize = 48;
/// Written bytes are dropped when they are this many, and half of all.
const DROPPED_BYTES_MIN: usize = 64 * 1024;

/// A queue of bytes: of those that may be sent, then of those that have to wait.
#[derive(Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    /// How many of `bytes` are written.
    written: usize,
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// All bytes that were ever added.
    added: u64,
}

impl Outgoing {
    /// How many bytes are not written yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.written + self.waiting_bytes
    }

    /// How much memory the queue holds for its peer, about.
    pub fn held(&self) -> usize {
        self.left() + self.waiting.len() * PIECE_BYTES
    }

    /// How many bytes were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// How many bytes were ever written.
    pub fn written(&self) -> u64 {
        self.added - self.left() as u64
    }

    pub fn add(&mut self, bytes: &[u8], due_ns: u64, now_ns: u64) {
        self.added += bytes.len() as u64;
        if self.waiting.is_empty() && due_ns <= now_ns {
            self.bytes.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            // Not before those that came before.
            let due_ns = self.waiting.back().map_or(due_ns, |(last_ns, _)| due_ns.max(*last_ns));
            self.waiting.push_back((due_ns, bytes.to_vec()));
            self.waiting_bytes += bytes.len();
        }
    }

    /// When the next bytes may be sent that have to wait now.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.waiting.front().map(|(due_ns, _)| *due_ns)
    }

    /// Whether bytes may be sent now.
    pub fn has_due(&self) -> bool {
        self.written < self.bytes.len()
    }

    /// Write what is due, at most this many bytes. Returns how many were written.
    pub fn write_to(&mut self, end: &mut End, most: usize, now_ns: u64) -> io::Result<usize> {
        while self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
            && let Some((_, bytes)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= bytes.len();
            self.bytes.extend_from_slice(&bytes);
        }
        let due = &self.bytes[self.written..];
        let due = &due[..due.len().min(most)];
        let written = if due.is_empty() { 0 } else { end.write(due)? };
        self.written += written;
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        } else if self.written >= DROPPED_BYTES_MIN.max(self.bytes.len() / 2) {
            // A peer that is slow and never idle must not make the queue grow for ever.
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn bytes_wait_behind_those_that_wait() {
        let mut outgoing = Outgoing::default();
        outgoing.add(b"a", 0, 5);
        outgoing.add(b"b", 20, 5);
        outgoing.add(b"c", 0, 6);
        assert_eq!((outgoing.has_due(), outgoing.next_due_ns()), (true, Some(20)));
        assert_eq!((outgoing.left(), outgoing.added(), outgoing.written()), (3, 3, 0));
    }

    #[test]
    fn a_slow_peer_does_not_make_the_queue_grow() {
        let (near, far) = sockets();
        let (mut end, mut outgoing) = (End::new(near), Outgoing::default());
        end.is_writable = true;
        let mut sink = vec![0; 1 << 16];
        for _ in 0..200 {
            outgoing.add(&[b'x'; 1 << 16], 0, 0);
            // Something is always left.
            while outgoing.left() > 1 << 15 {
                end.is_writable = true;
                let written = outgoing.write_to(&mut end, 1 << 15, 0).expect("a socket");
                (&far).read_exact(&mut sink[..written]).expect("what was written");
            }
        }
        assert_eq!(outgoing.left(), 1 << 15);
        assert!(outgoing.bytes.capacity() <= 1 << 19, "{}", outgoing.bytes.capacity());
    }

    #[test]
    fn pieces_that_wait_count_for_more_than_their_bytes() {
        let mut outgoing = Outgoing::default();
        (0..1000).for_each(|n| outgoing.add(b"a", 1000 + n, 5));
        assert!(outgoing.held() >= 1000 * (PIECE_BYTES + 1));
    }

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        near.set_nonblocking(true).expect("a socket");
        (near, listener.accept().expect("a client").0)
    }
}
