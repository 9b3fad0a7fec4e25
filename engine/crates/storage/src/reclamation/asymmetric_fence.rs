//! A memory fence between threads for which one side pays: `membarrier` of Linux. On systems without it,
//! each side executes a fence of its own.

use std::sync::atomic::{Ordering, compiler_fence, fence};

/// A pair of fences: readers execute the light one, writers the heavy one.
pub struct AsymmetricFence {
    /// The system executes the light side's fences when the heavy side asks for them.
    asymmetric: bool,
}

impl AsymmetricFence {
    pub fn new() -> AsymmetricFence {
        AsymmetricFence { asymmetric: system::register() }
    }

    /// Ordered with every `heavy` of another thread: either that thread sees what this one wrote
    /// before, or this one sees what that thread wrote before.
    #[inline]
    pub fn light(&self) {
        if self.asymmetric {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The other side of `light`, in all threads of this process.
    pub fn heavy(&self) {
        fence(Ordering::SeqCst);
        if self.asymmetric {
            system::heavy();
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use rustix::thread::{MembarrierCommand, membarrier};

    pub fn register() -> bool {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    pub fn heavy() {
        // The system never refuses this to a registered process, and children inherit the registration.
        // Without the fence, memory would be overwritten while readers use it.
        membarrier(MembarrierCommand::PrivateExpedited)
            .or_else(|_| {
                register();
                membarrier(MembarrierCommand::PrivateExpedited)
            })
            .expect("membarrier, which this process was registered for");
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    pub fn register() -> bool {
        false
    }

    pub fn heavy() {}
}
