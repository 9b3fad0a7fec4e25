//! A receive on io_uring straight into the item of a long value.

use std::ptr;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

/// The bytes that the kernel reads while the receive is in flight: where the value goes, and what ends it.
pub struct ValueReceive {
    message: libc::msghdr,
    parts: [libc::iovec; 2],
    /// The bytes behind the value.
    pub end: [u8; 2],
}

impl Default for ValueReceive {
    fn default() -> ValueReceive {
        let nowhere = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: a message of zeros has no name, no parts and no control data.
        let message = unsafe { std::mem::zeroed() };
        ValueReceive { message, parts: [nowhere; 2], end: [0; 2] }
    }
}

impl ValueReceive {
    /// Receive all of the value and of its end, with one completion. Both must stay where they are until then.
    pub fn begin(&mut self, socket: Fd, value: &mut [u8], end_bytes: usize) -> squeue::Entry {
        let end = self.end.as_mut_ptr();
        self.parts = [
            libc::iovec { iov_base: value.as_mut_ptr().cast(), iov_len: value.len() },
            libc::iovec { iov_base: end.cast(), iov_len: end_bytes.min(self.end.len()) },
        ];
        self.message.msg_iov = self.parts.as_mut_ptr();
        self.message.msg_iovlen = self.parts.len();
        opcode::RecvMsg::new(socket, &raw mut self.message).flags(libc::MSG_WAITALL as u32).build()
    }
}
