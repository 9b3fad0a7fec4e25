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
    /// A key that is too long.
    BadKey,
    BadExptime,
    BadDelta,
    /// More words than `delete` has.
    DeleteWords,
    /// No class of items.
    BadClass,
    /// Clients do not end this server.
    Shutdown,
    /// Not even the refusal is told. So many bytes of data follow and are to be dropped.
    Silent {
        swallow: u64,
    },
}

impl Refusal {
    /// What is told of it: a classic command whose last word is `noreply` hides what is wrong with its
    /// words, once there are enough of them.
    pub fn told_to(self, line: &[u8]) -> Refusal {
        let classic = !line.starts_with(b"m") && !line.starts_with(b"g");
        if !classic || !line.trim_ascii_end().ends_with(b" noreply") {
            return self;
        }
        match self {
            Refusal::BadFormat { swallow: 0 }
            | Refusal::Unknown
            | Refusal::BadClass
            | Refusal::Shutdown => self,
            other => Refusal::Silent { swallow: other.swallow() },
        }
    }

    /// Bytes of data behind the line, to be dropped.
    pub fn swallow(self) -> u64 {
        match self {
            Refusal::BadFormat { swallow } | Refusal::Silent { swallow } => swallow,
            _ => 0,
        }
    }

    /// The reply line.
    pub fn reply(self) -> &'static [u8] {
        match self {
            Refusal::Unknown => b"ERROR\r\n",
            Refusal::BadFormat { .. } | Refusal::BadKey => {
                b"CLIENT_ERROR bad command line format\r\n"
            }
            Refusal::BadExptime => b"CLIENT_ERROR invalid exptime argument\r\n",
            Refusal::DeleteWords => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Refusal::Shutdown => b"SERVER_ERROR: shutdown not enabled\r\n",
            Refusal::BadClass => b"BADCLASS invalid class id\r\n",
            Refusal::Silent { .. } => b"",
            Refusal::BadDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
        }
    }
}
