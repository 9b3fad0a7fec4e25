//! What a client file gives to the worker.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::judge::{Ending, Verdict};
use crate::tape::{Kind, Operation, Tape, Verb};

/// What `prepare` asks for.
#[derive(Deserialize)]
pub struct Setup {
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

impl Setup {
    /// Whether an option has a value; where it was not given, whether its default has.
    pub fn is(&self, option: &str, value: &str, default: &str) -> bool {
        self.options.get(option).map_or(default, String::as_str) == value
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

/// Who a client is and what it can do.
pub struct Client {
    pub name: &'static str,
    pub library: &'static str,
    pub version: &'static str,
    /// Its own choice first.
    pub wires: &'static [&'static str],
    pub features: &'static [&'static str],
    pub verbs: &'static [Verb],
    /// Those that it can do without a reply, too.
    pub quiet: &'static [Verb],
    /// Options with the values that they may have.
    pub options: &'static [(&'static str, &'static [&'static str])],
    pub in_process: bool,
}

impl Client {
    /// The kinds of operation that it can do.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let with_reply = self.verbs.iter().map(|verb| 2 * usize::from(verb.0));
        with_reply.chain(self.quiet.iter().map(|verb| 2 * usize::from(verb.0) + 1))
    }
}

/// The client of one lane, connected.
#[allow(async_fn_in_trait, reason = "each lane has an executor of its own")]
pub trait Session: Sized + Send + 'static {
    const CLIENT: Client;
    /// What a call returns; it is judged after the clock was read.
    type Answer;
    type Error;
    /// What the lanes share; most share nothing.
    type Shared: Clone + Send;

    fn share(setup: &Setup) -> Self::Shared;
    async fn open(setup: &Setup, shared: Self::Shared) -> Result<Self, String>;

    /// Why a trial that nothing else speaks against cannot be played.
    fn refuse(_setup: &Setup, _tape: &Tape) -> Option<&'static str> {
        None
    }

    /// The operation, and nothing else: this is what is timed.
    async fn call(&mut self, op: &Operation) -> Result<Self::Answer, Self::Error>;
    fn judge(tape: &Tape, op: &Operation, answer: &Self::Answer) -> Verdict;
    /// What an error comes to: some are answers.
    fn failure(op: &Operation, error: &Self::Error) -> Ending;

    /// End operations without a reply by a command that has one; how many such.
    async fn barrier(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }

    /// Connections that were opened again.
    fn reconnects(&self) -> u64 {
        0
    }
}
