//! The file of a Unix socket. A file that a killed server left is replaced, and none is left behind.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// The file of a socket. Dropping this value removes it.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listen at a path where there is no file, or a socket on which no process listens. `mode` is the permissions of its
/// file, `backlog` how many clients may wait until they are accepted.
pub fn bind(path: &Path, mode: u32, backlog: i32) -> io::Result<(UnixListener, SocketFile)> {
    let bound = match listen(path, mode, backlog) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => replace(path, mode, backlog),
        bound => bound,
    };
    Ok((bound?, SocketFile(path.to_owned())))
}

/// No client can connect before the file has its permissions, because the socket does not listen before.
fn listen(path: &Path, mode: u32, backlog: i32) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    rustix::net::listen(&socket, backlog)?;
    Ok(UnixListener::from(socket))
}

fn replace(path: &Path, mode: u32, backlog: i32) -> io::Result<UnixListener> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let reason = "the path is a file that is no socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            listen(path, mode, backlog)
        }
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}
