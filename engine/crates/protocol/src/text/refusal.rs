//! The error replies of memcached 1.6 to lines that are no valid command.

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such command.
    Unknown,
    /// Too few words, a wrong key or a wrong number. `swallow` bytes of data follow and are dropped.
    BadFormat {
        swallow: u64,
    },
    /// The key is too long.
    BadKey,
    BadExptime,
    BadDelta,
    /// `delete` has too many words.
    DeleteWords,
    /// There is no reply. `swallow` bytes of data follow and are dropped.
    Silent {
        swallow: u64,
    },
}

impl Refusal {
    /// The refusal of this line: a classic command with `noreply` as its last word gets no error reply, if it
    /// has enough words.
    pub fn unless_noreply(self, line: &[u8]) -> Refusal {
        let classic = !line.starts_with(b"m") && !line.starts_with(b"g");
        if !classic || !line.trim_ascii_end().ends_with(b" noreply") {
            return self;
        }
        match self {
            Refusal::BadFormat { swallow: 0 } | Refusal::Unknown => self,
            other => Refusal::Silent { swallow: other.swallow() },
        }
    }

    /// How many bytes of data follow the line and are dropped.
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
            Refusal::Silent { .. } => b"",
            Refusal::BadDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
        }
    }
}
