//! The io_uring that server and client use: one thread's ring, and buffers that the kernel fills.

mod provided;

use std::io;

use io_uring::IoUring;

pub use provided::{GROUP, Provided};

const SUBMISSIONS: u32 = 256;
/// So many completions wait in the ring at most before the kernel keeps them elsewhere.
pub const COMPLETIONS: u32 = 4096;

/// A ring that only the calling thread may use.
pub fn ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
}

/// Why this machine has no io_uring of the kind that is needed, if it has none.
pub fn refusal() -> Option<String> {
    let ring = match ring() {
        Ok(ring) => ring,
        Err(error) => return Some(format!("the kernel refuses io_uring: {error}")),
    };
    // Multishot receipt came with Linux 6.0, the last of what is used here with 6.1.
    let refused = Provided::register(&ring.submitter()).err();
    refused.map(|error| format!("the kernel's io_uring has no provided buffers: {error}"))
}
