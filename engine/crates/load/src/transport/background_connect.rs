//! A connection that is let in by a thread of its own: where there is more to do than to connect, so
//! that the loop cannot do it without waiting.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::traits::Transport;
use crate::options::{Address, ConnectionOptions};

/// A thread that is let in: it hangs up once the outcome is there.
pub struct BackgroundConnect<S> {
    signal: UnixStream,
    outcome: Receiver<io::Result<S>>,
}

impl<S: Transport> BackgroundConnect<S> {
    /// Begin; what it is to be watched for is the end of its line.
    pub fn start_connect(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<BackgroundConnect<S>> {
        let (signal, signal_end) = UnixStream::pair()?;
        let (sender, outcome) = channel();
        let (address, connection_options) = (address.clone(), connection_options.clone());
        std::thread::Builder::new().spawn(move || {
            // Nobody listens any more once the run is over.
            let _ = sender.send(S::open(&address, &connection_options, timeout));
            drop(signal_end);
        })?;
        Ok(BackgroundConnect { signal, outcome })
    }

    /// What came of it, once the line has ended.
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
