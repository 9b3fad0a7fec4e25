//! How a thread waits for its sockets: by epoll or by io_uring, chosen when a client is made.

use std::str::FromStr;

/// What is asked for, and what it comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// What is quicker by our measurements: epoll.
    #[default]
    Auto,
    Epoll,
    Uring,
}

impl Io {
    pub const ALL: [Io; 3] = [Io::Auto, Io::Epoll, Io::Uring];

    pub fn name(self) -> &'static str {
        match self {
            Io::Auto => "auto",
            Io::Epoll => "epoll",
            Io::Uring => "uring",
        }
    }

    /// Why a client that was asked for this takes what it takes.
    pub fn reason(self) -> &'static str {
        match self {
            Io::Auto => "auto: where both were measured, io_uring took as much CPU time",
            Io::Epoll | Io::Uring => "asked for",
        }
    }

    /// Why this machine has none of it, if so.
    pub fn refusal(self) -> Option<String> {
        if self == Io::Uring { cachemark_uring::refusal() } else { None }
    }
}

impl FromStr for Io {
    type Err = String;

    fn from_str(text: &str) -> Result<Io, String> {
        let found = Io::ALL.into_iter().find(|io| io.name() == text);
        found.ok_or_else(|| format!("no I/O {text:?}: there are auto, epoll and uring"))
    }
}
