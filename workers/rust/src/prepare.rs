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
    /// Whether an option has a value; where it was not given, whether its default has.
    pub fn is(&self, option: &str, value: &str, default: &str) -> bool {
        self.options.get(option).map_or(default, String::as_str) == value
    }

    /// After how many calls a caller's connections are closed and opened again; the text if it is no such number.
    pub fn reconnect_after(&self) -> Option<Result<u64, &str>> {
        let text = self.options.get("reconnect_after")?;
        let calls = text.parse().ok().filter(|calls| *calls > 0 && !text.starts_with('+'));
        Some(calls.ok_or(text))
    }

    /// Whether it plays the tape as its generations are for.
    pub fn plays_as_meant(&self, tape: &Tape) -> bool {
        let in_turn = !self.servers.is_empty() && self.connections <= self.threads;
        let lanes = (self.segment.1 * self.threads) as u64;
        in_turn && self.depth == 1 && self.common() && tape.generations.lanes == lanes
    }

    /// The ground that all clients share, or the library as it comes.
    pub fn common(&self) -> bool {
        self.is("profile", "common", "common")
    }

    /// User and password of the option `auth`, `USER:FILE`, whose first line is the password.
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
