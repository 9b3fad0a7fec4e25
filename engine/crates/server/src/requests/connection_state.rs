//! The memory of a connection from one request to the next.

use std::sync::Arc;

use crate::requests::upload::Upload;
use crate::state::event_log::Queue;

/// Which protocol a connection speaks. The first byte that it receives decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Text,
    Binary,
}

/// The protocol state of a connection between two requests. `Session` owns it and lends it to the command
/// that is carried out.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// The client's socket; `None` for datagrams.
    pub socket: Option<i32>,
    /// `None` before the first byte.
    pub dialect: Option<Dialect>,
    /// The client has logged in, if the server requires that.
    pub authenticated: bool,
    /// The challenge that a login by CRAM-MD5 has to answer.
    pub challenge: Option<Box<[u8]>>,
    /// How many of the next bytes are the data of a refused command, and are dropped.
    pub swallow: u64,
    /// How far a command with a long reply has come: the keys of a get, or the parts of a dump, that are
    /// already answered.
    pub resume_at: usize,
    /// The client has sent `quit`.
    pub quit: bool,
    /// The client watches the log: the lines that wait for it.
    pub watching: Option<Arc<Queue>>,
    /// How many of the next reads may bring the beginning of a long value.
    pub expected_uploads: u8,
    /// A long value that has not arrived completely.
    pub upload: Option<Box<Upload>>,
}

/// How much of the input a command took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    pub bytes: usize,
    /// Close the connection once the output is written.
    pub close: bool,
    /// The rest of the command is still to come.
    pub waits: bool,
}

impl Consumed {
    /// A command of this length, after which the connection goes on.
    #[inline]
    pub const fn bytes(bytes: usize) -> Consumed {
        Consumed { bytes, close: false, waits: false }
    }

    /// All of this input; the connection is closed.
    pub const fn all_and_close(input: &[u8]) -> Consumed {
        Consumed { bytes: input.len(), close: true, waits: false }
    }
}
