//! memcached over UDP: each datagram starts with a header of 8 bytes. A reply may take several
//! datagrams, which may arrive in any order. (memcached's doc/protocol.txt, "UDP protocol".)
//!
//! One request is in flight at a time. A lost datagram is not requested again: the operation times out,
//! and its socket is closed, so that a late reply cannot be taken for another one.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::login::authenticate;
use super::traits::{Transport, not_connected};
use crate::connection::REPLY_BYTES_MAX;
use crate::options::{Address, ConnectionOptions};

pub const HEADER_BYTES: usize = 8;
/// The maximum size of a request with its header. Larger datagrams may be fragmented.
pub const DATAGRAM_BYTES: usize = 1400;
/// The maximum size of a datagram.
const MAX_DATAGRAM_BYTES: usize = 1 << 16;

/// How much memory, and for how many datagrams, is kept for the next reply.
const REPLY_BYTES_KEPT: usize = 1 << 20;
const REPLY_PARTS_KEPT: usize = 1 << 10;

/// The datagrams of one reply. The memory is reused for the next one.
#[derive(Default)]
struct ReplyAssembly {
    id: u16,
    /// The bytes of the datagrams that came.
    taken: usize,
    parts: Vec<Option<usize>>,
    bytes: Vec<Vec<u8>>,
    missing: usize,
    is_complete: bool,
}

impl ReplyAssembly {
    /// Wait for the reply to request `id`.
    fn expect(&mut self, id: u16) {
        self.id = id;
        self.parts.clear();
        self.is_complete = false;
        if self.taken > REPLY_BYTES_KEPT || self.bytes.len() > REPLY_PARTS_KEPT {
            self.bytes = Vec::new();
        }
        self.taken = 0;
    }

    /// Add a datagram. True if it was the last missing one; then `whole` holds the complete reply.
    /// Duplicates, and datagrams that belong to another request, are dropped.
    fn take(&mut self, datagram: &[u8], whole: &mut Vec<u8>) -> bool {
        let Some((header, data)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
            return false;
        };
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (id, index, total) = (number(0), usize::from(number(2)), usize::from(number(4)));
        if self.is_complete || id != self.id || index >= total {
            return false;
        }
        if self.parts.is_empty() {
            self.parts.resize(total, None);
            self.missing = total;
            if self.bytes.len() < total {
                self.bytes.resize(total, Vec::new());
            }
        }
        let is_new = self.parts.len() == total && self.parts[index].is_none();
        if !is_new || self.taken + data.len() > REPLY_BYTES_MAX {
            return false;
        }
        self.taken += data.len();
        self.parts[index] = Some(data.len());
        self.bytes[index].clear();
        self.bytes[index].extend_from_slice(data);
        self.missing -= 1;
        self.is_complete = self.missing == 0;
        if self.is_complete {
            whole.clear();
            self.bytes[..total].iter().for_each(|part| whole.extend_from_slice(part));
        }
        self.is_complete
    }
}

/// A UDP socket with one request in flight.
pub struct UdpStream {
    socket: UdpSocket,
    reply: ReplyAssembly,
    /// A complete reply, and how much of it has been read.
    whole: Vec<u8>,
    read: usize,
    datagram: Vec<u8>,
}

impl UdpStream {
    fn open(places: &[SocketAddr]) -> io::Result<UdpStream> {
        let at = places.first().ok_or_else(not_connected)?;
        let any = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(at)?;
        let (reply, datagram) = (ReplyAssembly::default(), vec![0; MAX_DATAGRAM_BYTES]);
        Ok(UdpStream { socket, reply, whole: Vec::new(), read: 0, datagram })
    }
}

impl Transport for UdpStream {
    const BUFFERS: bool = true;

    fn open(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<UdpStream> {
        let Address::Udp(host) = address else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut stream = UdpStream::open(&host.resolve()?)?;
        stream.socket.set_read_timeout(Some(timeout))?;
        if let Some(who) = &connection_options.auth {
            authenticate(&mut stream, connection_options.wire, who)?;
        }
        // Only a reply shows that there is a server.
        stream.write_all(b"version\r\n")?;
        while stream.read(&mut [0; 64])? == 64 {}
        stream.socket.set_nonblocking(true)?;
        Ok(stream)
    }

    fn has_buffered_input(&self) -> bool {
        self.read < self.whole.len()
    }
}

impl Read for UdpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.whole.len() {
            let bytes = self.socket.recv(&mut self.datagram)?;
            if self.reply.take(&self.datagram[..bytes], &mut self.whole) {
                self.read = 0;
            }
        }
        let bytes = (&self.whole[self.read..]).read(into)?;
        self.read += bytes;
        Ok(bytes)
    }
}

impl Write for UdpStream {
    /// Send one complete request. It must fit into one datagram.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if HEADER_BYTES + bytes.len() > DATAGRAM_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the request does not fit into a datagram",
            ));
        }
        let id = self.reply.id.wrapping_add(1);
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..2].copy_from_slice(&id.to_be_bytes());
        datagram[5] = 1;
        datagram[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
        self.socket.send(&datagram[..HEADER_BYTES + bytes.len()])?;
        self.reply.expect(id);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for UdpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(id: u8, index: u8, total: u8, data: &[u8]) -> Vec<u8> {
        [&[0, id, 0, index, 0, total, 0, 0], data].concat()
    }

    #[test]
    fn a_reply_is_assembled_from_datagrams_in_any_order() {
        let (mut reply, mut whole) = (ReplyAssembly::default(), Vec::new());
        for id in [7, 8] {
            reply.expect(u16::from(id));
            for (of, index, total, data) in [
                (id, 2, 3, &b"c"[..]),
                (id, 2, 3, b"again"),
                (id - 1, 0, 1, b"of another"),
                (id, 1, 2, b"of other parts"),
                (id, 0, 3, b"a"),
            ] {
                assert!(!reply.take(&datagram(of, index, total, data), &mut whole));
            }
            assert!(reply.take(&datagram(id, 1, 3, b"b"), &mut whole));
            assert_eq!(whole, b"abc");
        }
    }

    #[test]
    fn a_reply_takes_no_more_memory_than_over_tcp() {
        let (mut reply, mut whole) = (ReplyAssembly::default(), Vec::new());
        let large = vec![b'x'; 1 << 16];
        for id in 0..3 {
            reply.expect(id);
            for index in 0..1000_u16 {
                let header = [id, index, 65_535, 0].map(u16::to_be_bytes).concat();
                assert!(!reply.take(&[&header[..], &large].concat(), &mut whole));
            }
            let kept: usize = reply.bytes.iter().map(Vec::capacity).sum();
            assert!(kept <= REPLY_BYTES_MAX, "{kept}");
        }
    }

    #[test]
    fn other_datagrams_are_dropped() {
        let (mut reply, mut whole) = (ReplyAssembly::default(), Vec::new());
        reply.expect(1);
        for bytes in
            [&b""[..], b"short", &datagram(1, 1, 1, b"beyond"), &datagram(1, 0, 0, b"none")]
        {
            assert!(!reply.take(bytes, &mut whole));
        }
        assert!(reply.take(&datagram(1, 0, 1, b"it"), &mut whole));
        assert!(!reply.take(&datagram(1, 0, 1, b"it"), &mut whole), "it came");
        assert_eq!(whole, b"it");
    }
}
