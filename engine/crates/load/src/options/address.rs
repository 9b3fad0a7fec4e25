//! The address of a server.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// Parse `host:port`, `udp:host:port` or `unix:/path`. An error says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        if let Some(rest) = text.strip_prefix("udp:") {
            return match Address::parse(rest)? {
                Address::Tcp(address) => Ok(Address::Udp(address)),
                _ => Err(format!("{text}: write udp:HOST:PORT")),
            };
        }
        let mut found = text.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
        found.next().map(Address::Tcp).ok_or_else(|| format!("{text}: no such host"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(out, "{address}"),
            Address::Udp(address) => write!(out, "udp:{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}
