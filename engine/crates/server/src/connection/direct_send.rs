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
    pub sent: usize,
}

impl DirectSend<'_> {
    pub fn to(socket: BorrowedFd<'_>) -> DirectSend<'_> {
        DirectSend { socket, full: false, sent: 0 }
    }

    /// How many bytes were sent, and whether the socket takes nothing more.
    #[inline]
    pub fn progress(&self) -> (usize, bool) {
        (self.sent, self.full)
    }

    /// Send what waits in `out`, then a value, then its end, as far as the socket takes them without waiting. The rest
    /// is left in `out`. An error of the socket shows again when that is written.
    pub fn send(&mut self, out: &mut Vec<u8>, value: &[u8], end: &[u8]) {
        let parts = [IoSlice::new(out), IoSlice::new(value), IoSlice::new(end)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = match self.full {
            true => 0,
            false => sendmsg(self.socket, &parts, &mut SendAncillaryBuffer::default(), flags)
                .unwrap_or(0),
        };
        self.sent += sent;
        self.full = sent < out.len() + value.len() + end.len();
        let of_value = sent.saturating_sub(out.len());
        let of_end = of_value.saturating_sub(value.len());
        out.drain(..sent.min(out.len()));
        out.extend_from_slice(&value[of_value.min(value.len())..]);
        out.extend_from_slice(&end[of_end..]);
    }
}
