//! The file of a Unix socket. A file that a killed server left is replaced, and none is left behind.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a socket. Dropping this value removes it.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listen at a path where there is no file, or a socket on which nobody listens.
pub fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => replace(path),
        bound => bound,
    };
    Ok((bound?, SocketFile(path.to_owned())))
}

fn replace(path: &Path) -> io::Result<UnixListener> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let reason = "the path is a file that is no socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}
