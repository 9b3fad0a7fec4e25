//! Why a client cannot be prepared.

use std::fmt;
use std::io;

use crate::options::Address;

/// Why a client cannot be prepared.
#[derive(Debug)]
pub enum PrepareError {
    /// The options contradict each other.
    Usage(String),
    /// This client cannot play the tape with these options.
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
