//! Long values are sent from the store's own memory, without a copy.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// Shorter values are copied: several of them then go with one system call.
pub const DIRECT_BYTES_MIN: usize = 16 * 1024;

/// A socket that has taken all that was written to it before.
#[derive(Debug)]
pub struct DirectSend<'a> {
    socket: BorrowedFd<'a>,
    /// It takes nothing more now.
    full: bool,
    /// More replies follow.
    pub more: bool,
    pub sent: usize,
}

impl DirectSend<'_> {
    pub fn to(socket: BorrowedFd<'_>) -> DirectSend<'_> {
        DirectSend { socket, full: false, more: false, sent: 0 }
    }

    /// How many bytes were sent, and whether the socket takes nothing more.
    #[inline]
    pub fn progress(&self) -> (usize, bool) {
        (self.sent, self.full)
    }

    /// Send what waits in `out`, then a value, then its end, as far as the socket takes them without waiting. The rest
    /// is left in `out`. An error of the socket shows again when that is written.
    ///
    /// If more replies follow, the last byte is left too: the kernel holds the others back until that is written, and
    /// sends the values of several replies together.
    pub fn send(&mut self, out: &mut Vec<u8>, value: &[u8], end: &[u8]) {
        let (now, last) = match (self.more, end) {
            (true, [_, ..]) => (value, end),
            (true, []) => value.split_at(value.len() - 1),
            (false, _) => (value, &[][..]),
        };
        let sent_end = if self.more { &[] } else { end };
        let parts = [IoSlice::new(out), IoSlice::new(now), IoSlice::new(sent_end)];
        let mut flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, self.more);
        let sent = match self.full {
            true => 0,
            false => sendmsg(self.socket, &parts, &mut SendAncillaryBuffer::default(), flags)
                .unwrap_or(0),
        };
        self.sent += sent;
        self.full = sent < out.len() + now.len() + sent_end.len();
        let of_value = sent.saturating_sub(out.len());
        let of_end = of_value.saturating_sub(now.len());
        out.drain(..sent.min(out.len()));
        out.extend_from_slice(&now[of_value.min(now.len())..]);
        out.extend_from_slice(&sent_end[of_end..]);
        out.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn with_more_replies_the_last_byte_waits() {
        for (more, end) in
            [false, true].into_iter().flat_map(|more| [(more, &b"\r\n"[..]), (more, &b""[..])])
        {
            let (socket, mut peer) = UnixStream::pair().expect("sockets");
            let value = vec![b'v'; DIRECT_BYTES_MIN];
            let mut direct = DirectSend { more, ..DirectSend::to(socket.as_fd()) };
            let mut out = b"head ".to_vec();
            direct.send(&mut out, &value, end);
            let mut said = vec![0; direct.sent];
            peer.read_exact(&mut said).expect("what was sent");
            let waits = if more { end.len().max(1) } else { 0 };
            assert_eq!((direct.full, out.len()), (false, waits));
            said.append(&mut out);
            assert!(said == [b"head ", &value[..], end].concat());
            // A peer that does not read.
            while !direct.full {
                direct.send(&mut out, &value, end);
            }
            assert!(out.len() > end.len());
        }
    }
}
