//! The server's messages on stderr while it runs.

use std::io::{Write, stderr};

/// Print a line. A server goes on if stderr is full or its reader is gone.
pub fn report(text: &str) {
    let _ = writeln!(stderr(), "cachemark-engine: {text}");
}
