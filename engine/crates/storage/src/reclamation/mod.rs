//! When memory that readers may still look at can be written again.

mod asymmetric_fence;
pub mod grace_periods;
mod thread_index;
