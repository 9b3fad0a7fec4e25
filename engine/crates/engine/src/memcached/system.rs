//! memcached's requests to the system before it serves: limits, the user, the background, locked memory.

use std::ffi::CString;
use std::io;

use cachemark_command::process::print_error;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, getuid, setrlimit};

use crate::memcached::configuration::{
    Configuration, Ending, FAILURE, NO_USER, SYSTEM, USAGE, failed,
};

/// Prepare the process. No other thread runs yet.
pub fn prepare(configuration: &Configuration) -> Result<(), Ending> {
    if configuration.dumps_core {
        allow_core_dumps()?;
    }
    allow_files(configuration);
    if getuid().is_root() || geteuid().is_root() {
        match configuration.user.as_deref() {
            None | Some("") => return Err(failed(USAGE, "must add '-u root' to start as root")),
            Some(user) => become_user(user)?,
        }
    }
    if configuration.daemon {
        // SAFETY: no other thread runs yet.
        if unsafe { libc::daemon(0, i32::from(configuration.tuning.verbosity > 0)) } != 0 {
            return Err(failed(FAILURE, "failed to daemon() in order to daemonize"));
        }
    }
    if configuration.locks_memory {
        // SAFETY: it takes no pointers.
        if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
            let error = io::Error::last_os_error();
            print_error(&format!("warning: -k invalid, mlockall() failed: {error}"));
        }
    }
    Ok(())
}

fn allow_core_dumps() -> Result<(), Ending> {
    let unlimited = Rlimit { current: None, maximum: None };
    if setrlimit(Resource::Core, unlimited).is_err() {
        let most = getrlimit(Resource::Core).maximum;
        // If this fails too, the limit below says so.
        let _ = setrlimit(Resource::Core, Rlimit { current: most, maximum: most });
    }
    match getrlimit(Resource::Core).current {
        Some(0) => Err(failed(SYSTEM, "failed to ensure corefile creation")),
        _ => Ok(()),
    }
}

/// Files that the server needs beside its connections.
const OTHER_FILES: u64 = 64;

/// Allow as many open files as there may be connections; with an idle timeout, each has two.
fn allow_files(configuration: &Configuration) {
    let each = if configuration.idle_timeout_s > 0 { 2 } else { 1 };
    let needed = configuration.connections.saturating_mul(each)
        + OTHER_FILES
        + 4 * configuration.threads as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let maximum = limit.maximum.map(|most| most.max(needed));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
    if raised.is_err() {
        // As many as are allowed; what is beyond is refused when it comes.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

fn become_user(user: &str) -> Result<(), Ending> {
    let unknown = || failed(NO_USER, format!("can't find the user {user} to switch to"));
    let name = CString::new(user).map_err(|_| unknown())?;
    // SAFETY: a string with its end; the result is used before the next such call, and no other thread runs.
    let entry = unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.ok_or_else(unknown)?;
    // SAFETY: these take no pointers, but for none at all.
    let groups = unsafe { libc::setgroups(0, std::ptr::null()) };
    if groups != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EPERM) {
        return Err(failed(SYSTEM, "failed to drop supplementary groups"));
    }
    // SAFETY: as above.
    if unsafe { libc::setgid(entry.pw_gid) != 0 || libc::setuid(entry.pw_uid) != 0 } {
        return Err(failed(SYSTEM, format!("failed to assume identity of user {user}")));
    }
    Ok(())
}
