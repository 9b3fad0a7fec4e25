//! Connecting on a thread of its own, if it takes more than one step (a name, TLS, a login): the event
//! loop must not block.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::traits::Transport;
use crate::options::{Address, ConnectionOptions};

/// A connect that runs on another thread. Its file descriptor becomes readable when the connect has
/// finished.
pub struct BackgroundConnect<S> {
    signal: UnixStream,
    outcome: Receiver<io::Result<S>>,
}

impl<S: Transport> BackgroundConnect<S> {
    /// Start the thread.
    pub fn start_connect(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<BackgroundConnect<S>> {
        let (signal, signal_end) = UnixStream::pair()?;
        let (sender, outcome) = channel();
        let (address, connection_options) = (address.clone(), connection_options.clone());
        std::thread::Builder::new().spawn(move || {
            // After the run no thread receives the result.
            let _ = sender.send(S::open(&address, &connection_options, timeout));
            drop(signal_end);
        })?;
        Ok(BackgroundConnect { signal, outcome })
    }

    /// The result. Call it when the file descriptor is readable.
    pub fn outcome(self) -> io::Result<S> {
        let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
        self.outcome.recv().map_err(gone)?
    }
}

impl<S> AsFd for BackgroundConnect<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}
