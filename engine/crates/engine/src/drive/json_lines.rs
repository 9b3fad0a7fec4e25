//! The lines of `--json-lines`: the settings, every second, and the results.

use cachemark_command::process::print_compact_json;
use serde::Serialize;

use crate::drive::second::Second;
use crate::worker::messages::Done;

/// How a window was played.
#[derive(Clone, Copy, Serialize)]
pub struct Settings<'a> {
    pub server: &'a str,
    pub threads: u64,
    pub connections: u64,
    pub depth: u64,
    pub io: &'static str,
    pub io_reason: &'static str,
    pub open_loop: bool,
    pub seed: u64,
    /// The operations on the tape: with more of them, it is played again.
    pub tape_ops: u64,
    /// None if a trace is played once.
    pub duration_ms: Option<u64>,
    pub timeout_ms: u64,
}

/// A line; `event` says which one it is.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line<'a> {
    Begin(&'a Settings<'a>),
    Second(Second<'a>),
    /// The whole window. `problem`: why the exit status is 1.
    Result {
        problem: Option<&'a str>,
        warmup_ops: u64,
        /// Later passes of the tape found the keys of earlier ones.
        tape_repeated: bool,
        measure: Box<Done>,
    },
}

impl Line<'_> {
    /// Print it on stdout. The program ends if stdout is closed.
    pub fn print(&self) {
        print_compact_json(self);
    }
}
