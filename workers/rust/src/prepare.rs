//! The request `prepare`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::tape::Tape;

/// The request `prepare`.
#[derive(Clone, Deserialize)]
pub struct Prepare {
    pub servers: Vec<String>,
    #[serde(default = "text")]
    pub wire: String,
    #[serde(default = "one")]
    pub threads: usize,
    #[serde(default = "one")]
    pub connections: usize,
    #[serde(default = "one")]
    pub depth: usize,
    pub tape: String,
    #[serde(default = "whole")]
    pub segment: (usize, usize),
    #[serde(default = "second")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

fn text() -> String {
    "text".into()
}

fn one() -> usize {
    1
}

fn whole() -> (usize, usize) {
    (0, 1)
}

fn second() -> u64 {
    1000
}

impl Prepare {
    /// Whether an option, or else its default, has a value.
    pub fn is(&self, option: &str, value: &str, default: &str) -> bool {
        self.options.get(option).map_or(default, String::as_str) == value
    }

    /// The number of calls after which a caller renews its connections; the option's text if it is no such number.
    pub fn reconnect_after(&self) -> Option<Result<u64, &str>> {
        let text = self.options.get("reconnect_after")?;
        let calls = text.parse().ok().filter(|calls| *calls > 0 && !text.starts_with('+'));
        Some(calls.ok_or(text))
    }

    /// Whether the generations of the tape hold for this way to play it.
    pub fn plays_as_meant(&self, tape: &Tape) -> bool {
        let in_turn = !self.servers.is_empty() && self.connections <= self.threads;
        let lanes = (self.segment.1 * self.threads) as u64;
        in_turn && self.depth == 1 && self.common() && tape.generations.lanes == lanes
    }

    /// Whether to use the settings that all clients share, and not the library's own.
    pub fn common(&self) -> bool {
        self.is("profile", "common", "common")
    }

    /// User and password of the option `auth`, `USER:FILE`; the first line of the file is the password.
    pub fn login(&self) -> Result<Option<(&str, String)>, String> {
        let Some((user, file)) = self.options.get("auth").and_then(|text| text.split_once(':'))
        else {
            return Ok(None);
        };
        let lines = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        Ok(Some((user, lines.lines().next().unwrap_or_default().to_owned())))
    }

    /// The time limit of an operation or a connect.
    pub fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.timeout_ms)
    }
}
