//! The protocols that a client speaks, by name.

use std::str::FromStr;

use cachemark_tape::Verb;

/// A protocol as one asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireName {
    #[default]
    Text,
    Binary,
    Meta,
}

impl WireName {
    pub const ALL: [WireName; 3] = [WireName::Text, WireName::Binary, WireName::Meta];

    pub fn name(self) -> &'static str {
        match self {
            WireName::Text => "text",
            WireName::Binary => "binary",
            WireName::Meta => "meta",
        }
    }

    /// Whether a kind of operation can be asked for in this protocol.
    pub fn can(self, verb: Verb, noreply: bool) -> bool {
        // The binary protocol has a quiet form of every write but this one.
        self != WireName::Binary || verb != Verb::Touch || !noreply
    }
}

impl FromStr for WireName {
    type Err = String;

    fn from_str(text: &str) -> Result<WireName, String> {
        let found = WireName::ALL.into_iter().find(|wire| wire.name() == text);
        found.ok_or_else(|| format!("no wire {text:?}: there are text, binary and meta"))
    }
}
