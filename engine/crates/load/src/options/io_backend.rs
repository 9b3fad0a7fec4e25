//! How a thread waits for its sockets: epoll or io_uring.

use std::str::FromStr;

/// The I/O backend that was asked for, or that a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoBackend {
    /// The faster one by our measurements: epoll.
    #[default]
    Auto,
    Epoll,
    Uring,
}

impl IoBackend {
    pub const ALL: [IoBackend; 3] = [IoBackend::Auto, IoBackend::Epoll, IoBackend::Uring];

    pub fn name(self) -> &'static str {
        match self {
            IoBackend::Auto => "auto",
            IoBackend::Epoll => "epoll",
            IoBackend::Uring => "uring",
        }
    }

    /// Why a client with this option uses the backend that it uses.
    pub fn reason(self) -> &'static str {
        match self {
            IoBackend::Auto => "auto: where both were measured, io_uring took as much CPU time",
            IoBackend::Epoll | IoBackend::Uring => "asked for",
        }
    }

    /// Why this machine does not support the backend; `None` if it does.
    pub fn unsupported_reason(self) -> Option<String> {
        if self == IoBackend::Uring { cachemark_uring::unavailable_reason() } else { None }
    }
}

impl FromStr for IoBackend {
    type Err = String;

    fn from_str(text: &str) -> Result<IoBackend, String> {
        let found = IoBackend::ALL.into_iter().find(|io| io.name() == text);
        found.ok_or_else(|| format!("unknown I/O {text:?}: use auto, epoll or uring"))
    }
}
