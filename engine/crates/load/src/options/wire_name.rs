//! The names of the protocols that a client speaks.

use std::str::FromStr;

use cachemark_tape::Verb;

/// The protocol that the user asked for.
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

    /// Whether the protocol has this kind of operation.
    pub fn supports(self, verb: Verb, noreply: bool) -> bool {
        // The binary protocol has a quiet form of every write except touch.
        self != WireName::Binary || verb != Verb::Touch || !noreply
    }
}

impl FromStr for WireName {
    type Err = String;

    fn from_str(text: &str) -> Result<WireName, String> {
        let found = WireName::ALL.into_iter().find(|wire| wire.name() == text);
        found.ok_or_else(|| format!("unknown wire {text:?}: use text, binary or meta"))
    }
}
