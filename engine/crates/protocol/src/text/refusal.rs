//! The error replies of memcached 1.6 to lines that are no valid command.

use crate::words::Words;

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
    /// There is no reply. `swallow` bytes of data follow and are dropped.
    Silent {
        swallow: u64,
    },
}

impl Refusal {
    /// The refusal of this line: with `noreply` as its last word, it gets no error reply if its command is unknown,
    /// or if it is a classic command with enough words.
    pub fn unless_noreply(self, line: &[u8]) -> Refusal {
        if Words::of(line).last() != Some(b"noreply") {
            return self;
        }
        let classic = !line.starts_with(b"m") && !line.starts_with(b"g");
        match self {
            Refusal::BadFormat { swallow: 0 } => self,
            other if classic || other == Refusal::Unknown => {
                Refusal::Silent { swallow: other.swallow() }
            }
            other => other,
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
            Refusal::Silent { .. } => b"",
            Refusal::BadDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
        }
    }
}
