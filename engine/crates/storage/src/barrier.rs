//! A fence between threads whose price one side pays for all: `membarrier` of Linux. Where the
//! system has none, each side makes its own.

use std::sync::atomic::{Ordering, compiler_fence, fence};

/// How threads are kept in order.
pub struct Barrier {
    /// The system makes the light side's fences when the heavy side asks.
    asymmetric: bool,
}

impl Barrier {
    pub fn new() -> Barrier {
        Barrier { asymmetric: system::register() }
    }

    /// What comes before is seen, or what comes after sees, across a `heavy` of another thread.
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
        // Nothing refuses this to a process that was registered, and children inherit that; without
        // the barrier memory would be written under readers.
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
