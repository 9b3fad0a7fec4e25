//! io_uring for server and client: the ring of a thread, and buffers that the kernel fills.

mod provided_buffers;

use std::io;

use io_uring::IoUring;

pub use provided_buffers::{BUFFER_GROUP, ProvidedBuffers, receive_once};

const SUBMISSIONS: u32 = 256;
/// How many completions fit into the ring; the kernel keeps more of them elsewhere.
pub const COMPLETIONS: u32 = 4096;

/// Create a ring that only the calling thread may use.
pub fn ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
}

/// Why this machine has no suitable io_uring; `None` if it has one.
pub fn unavailable_reason() -> Option<String> {
    let ring = match ring() {
        Ok(ring) => ring,
        Err(error) => return Some(format!("the kernel refuses io_uring: {error}")),
    };
    // Multishot receive needs Linux 6.0, and the rest of what is used here needs 6.1.
    let refused = ProvidedBuffers::register(&ring.submitter(), 1).err();
    refused.map(|error| format!("the kernel's io_uring has no provided buffers: {error}"))
}
