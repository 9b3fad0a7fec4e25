//! Why a client cannot be made.

use std::fmt;
use std::io;

use crate::options::Address;

/// Why a client cannot be made.
#[derive(Debug)]
pub enum PrepareError {
    /// What was asked for makes no sense.
    Usage(String),
    /// The tape holds what this client does not do in this way.
    Unsupported(String),
    Connect(Address, io::Error),
}

impl fmt::Display for PrepareError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrepareError::Usage(text) | PrepareError::Unsupported(text) => out.write_str(text),
            PrepareError::Connect(address, error) => write!(out, "{address}: {error}"),
        }
    }
}
