//! The commands of the text protocols, as a server reads them.

use crate::meta::request::MetaRequest;
use crate::text::keys::Keys;
use crate::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
}

impl StoreVerb {
    pub fn name(self) -> &'static str {
        match self {
            StoreVerb::Set => "set",
            StoreVerb::Add => "add",
            StoreVerb::Replace => "replace",
            StoreVerb::Append => "append",
            StoreVerb::Prepend => "prepend",
            StoreVerb::Cas => "cas",
        }
    }
}

/// The header of a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    pub verb: StoreVerb,
    pub key: &'a [u8],
    pub flags: u32,
    pub exptime: i64,
    pub length: u64,
    /// The cas number that `cas` expects; 0 for the other commands.
    pub cas: u64,
    pub noreply: bool,
}

/// The commands that control the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlVerb {
    Verbosity,
    MemoryLimit,
    Slabs,
    Lru,
    Crawler,
    Shutdown,
    RefreshCertificates,
    DebugTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Get {
        keys: Keys<'a>,
        cas: bool,
    },
    GetAndTouch {
        keys: Keys<'a>,
        exptime: i64,
        cas: bool,
    },
    Store(Store<'a>),
    Delete {
        key: &'a [u8],
        noreply: bool,
    },
    Arithmetic {
        key: &'a [u8],
        delta: u64,
        increment: bool,
        noreply: bool,
    },
    Touch {
        key: &'a [u8],
        exptime: i64,
        noreply: bool,
    },
    FlushAll {
        delay: i64,
        noreply: bool,
    },
    Version,
    /// A command that controls the server. Its words are left to the server.
    Control {
        verb: ControlVerb,
        words: Words<'a>,
        noreply: bool,
    },
    /// `watch`, with the kinds of events to show.
    Watch {
        kinds: Words<'a>,
    },
    /// The topic is the rest of the line, because some topics have arguments.
    Stats {
        topic: &'a [u8],
    },
    Quit,
    Meta(MetaRequest<'a>),
    MetaNoop,
}
