//! The lock of a region between processes: a robust mutex, which the system hands on when its
//! holder dies. Threads of one process have a mutex of their own before it.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;

type Place = [AtomicU64; 8];

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= size_of::<Place>());

fn raw(place: &Place) -> *mut libc::pthread_mutex_t {
    place.as_ptr().cast_mut().cast()
}

/// Make the lock in its place; once, before any process takes it.
pub fn make(place: &Place) -> io::Result<()> {
    let check = |code: i32| match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are made before they are used and destroyed after; the place is large
    // enough, on eight bytes, zeroed, in memory that all its users map, and nobody uses it yet.
    unsafe {
        check(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
        let attributes = attributes.as_mut_ptr();
        check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))?;
        check(libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST))?;
        let made = check(libc::pthread_mutex_init(raw(place), attributes));
        libc::pthread_mutexattr_destroy(attributes);
        made
    }
}

/// The lock, held.
pub struct Held<'a> {
    place: &'a Place,
    /// The holder before died with it; what it guards may be half done.
    pub orphaned: bool,
}

impl Held<'_> {
    /// Take the lock that `make` made there.
    pub fn take(place: &Place) -> Held<'_> {
        // SAFETY: a mutex is there, and this thread does not hold it: a mutex of its process's own
        // comes before it.
        let code = unsafe { libc::pthread_mutex_lock(raw(place)) };
        assert!(code == 0 || code == libc::EOWNERDEAD, "a lock between processes: error {code}");
        Held { place, orphaned: code == libc::EOWNERDEAD }
    }

    /// What the dead holder left is whole again.
    pub fn mended(&mut self) {
        // SAFETY: held by this thread, with its holder before it dead.
        unsafe { libc::pthread_mutex_consistent(raw(self.place)) };
        self.orphaned = false;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: held by this thread.
        unsafe { libc::pthread_mutex_unlock(raw(self.place)) };
    }
}
