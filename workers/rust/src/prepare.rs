//! What `prepare` asks for, and what of it is refused before anything is timed.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::Session;
use crate::tape::{Tape, kind_name};

/// What `prepare` asks for.
#[derive(Deserialize)]
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

    /// What an operation or a connect may last.
    pub fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.timeout_ms)
    }
}

/// What of a trial cannot be played, before anything is timed.
pub fn refusal<S: Session>(setup: &Prepare, tape: &Tape) -> Option<String> {
    let client = S::CLIENT;
    let own: Vec<_> = client.kinds().collect();
    let missing: Vec<_> =
        tape.kinds.iter().filter(|kind| !own.contains(kind)).map(|kind| kind_name(*kind)).collect();
    let unix = setup.servers.iter().any(|server| server.starts_with("unix:"));
    let can = |feature: &str| client.features.contains(&feature);
    let option = setup.options.iter().find(|(name, value)| {
        !client
            .options
            .iter()
            .any(|(known, values)| known == name && values.contains(&value.as_str()))
    });
    let numbers = [setup.threads, setup.connections, setup.depth, setup.timeout_ms as usize];
    let checks = [
        (
            numbers.contains(&0) || setup.segment.0 >= setup.segment.1,
            "numbers that mean nothing".to_owned(),
        ),
        (
            client.in_process() && !setup.servers.is_empty(),
            "it is in this process and takes no servers".into(),
        ),
        (!client.in_process() && setup.servers.is_empty(), "it needs a server".into()),
        (!client.wires.contains(&setup.wire.as_str()), format!("no wire {}", setup.wire)),
        (unix && !can("unix"), "no Unix sockets".into()),
        (setup.servers.len() > 1 && !can("cluster"), "one server only".into()),
        (tape.thinks, "no time to think between operations".into()),
        (setup.depth > 1, "one operation at a time on a connection (depth 1)".into()),
        (
            !client.in_process() && setup.connections != setup.threads,
            "one connection for each thread".into(),
        ),
        (!missing.is_empty(), format!("no {}", missing.join(", "))),
        (option.is_some(), format!("no option {option:?}; it has: {:?}", client.options)),
    ];
    let refused = checks.into_iter().find(|(refused, _)| *refused).map(|(_, reason)| reason);
    refused.or_else(|| S::refuse(setup, tape).map(str::to_owned))
}
