//! The file of a Unix socket: one that a killed server left is taken over, and none is left behind.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket's file, which is gone with this value.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed by hand.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listen at a path where nothing is, or a socket that nobody listens at.
pub fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => take_over(path),
        bound => bound,
    };
    Ok((bound?, SocketFile(path.to_owned())))
}

fn take_over(path: &Path) -> io::Result<UnixListener> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let reason = "a file is there that is no socket";
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
