//! The lock of a region between processes: a robust mutex of POSIX, which another process can take when its
//! holder has died. Threads of one process first lock a mutex of the process.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;

/// The memory of the mutex.
type MutexWords = [AtomicU64; 8];

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= size_of::<MutexWords>());

fn raw(words: &MutexWords) -> *mut libc::pthread_mutex_t {
    words.as_ptr().cast_mut().cast()
}

/// Initialize the lock, once, before any process takes it.
pub fn init(words: &MutexWords) -> io::Result<()> {
    let check = |code: i32| match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are initialized before their use and destroyed after it; the words are large
    // enough, aligned, zeroed, in memory that all users map, and no thread uses them yet.
    unsafe {
        check(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
        let attributes = attributes.as_mut_ptr();
        check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))?;
        check(libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST))?;
        let made = check(libc::pthread_mutex_init(raw(words), attributes));
        libc::pthread_mutexattr_destroy(attributes);
        made
    }
}

/// The lock while it is held.
pub struct RobustGuard<'a> {
    words: &'a MutexWords,
    /// The previous holder died; what the lock guards may be inconsistent.
    pub owner_died: bool,
}

impl RobustGuard<'_> {
    /// Take the lock, which was initialized by `init`.
    pub fn lock(words: &MutexWords) -> RobustGuard<'_> {
        // SAFETY: the mutex is initialized, and this thread does not hold it: a mutex of the process is
        // locked before it.
        let code = unsafe { libc::pthread_mutex_lock(raw(words)) };
        assert!(code == 0 || code == libc::EOWNERDEAD, "a lock between processes: error {code}");
        RobustGuard { words, owner_died: code == libc::EOWNERDEAD }
    }

    /// The guarded data is consistent again.
    pub fn mark_consistent(&mut self) {
        // SAFETY: this thread holds the mutex, and its previous holder died.
        unsafe { libc::pthread_mutex_consistent(raw(self.words)) };
        self.owner_died = false;
    }
}

impl Drop for RobustGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(raw(self.words)) };
    }
}
