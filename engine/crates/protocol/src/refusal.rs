//! What memcached 1.6 says to lines that are no command.

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such command.
    Unknown,
    /// Too few words, a bad key, a bad number. So many bytes of data follow and are to be dropped.
    BadFormat {
        swallow: u64,
    },
    BadExptime,
    BadDelta,
    /// More words than `delete` has.
    DeleteWords,
    /// Clients do not end this server.
    Shutdown,
    /// Not even the refusal is told.
    Silent,
}

impl Refusal {
    /// The reply line.
    pub fn reply(self) -> &'static [u8] {
        match self {
            Refusal::Unknown => b"ERROR\r\n",
            Refusal::BadFormat { .. } => b"CLIENT_ERROR bad command line format\r\n",
            Refusal::BadExptime => b"CLIENT_ERROR invalid exptime argument\r\n",
            Refusal::DeleteWords => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Refusal::Shutdown => b"SERVER_ERROR: shutdown not enabled\r\n",
            Refusal::Silent => b"",
            Refusal::BadDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
        }
    }
}
