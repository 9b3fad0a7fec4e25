//! The address of a server.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(HostPort),
    Udp(HostPort),
    Unix(PathBuf),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPort {
    Ip(SocketAddr),
    /// A name and a port, as `name:port`. Each connection resolves it anew, because a server may move.
    Name(String),
}

impl HostPort {
    /// Where the host is now, at least one place. This may ask a name server, and blocks until it has answered. An
    /// error says that the name does not resolve at present.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let name = match self {
            HostPort::Ip(address) => return Ok(vec![*address]),
            HostPort::Name(name) => name,
        };
        let found: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        match found.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "no such host")),
            false => Ok(found),
        }
    }

    /// Parse `host:port`. The name must resolve now.
    fn parse(text: &str) -> Result<HostPort, String> {
        if let Ok(address) = text.parse() {
            return Ok(HostPort::Ip(address));
        }
        let named = HostPort::Name(text.to_owned());
        named.resolve().map(|_| named).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => format!("{text}: write HOST:PORT"),
            _ => format!("{text}: {error}"),
        })
    }
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
        HostPort::parse(text).map(Address::Tcp)
    }

    /// Whether it has a name, so that a connect may have to wait for a name server.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self, Address::Tcp(HostPort::Name(_)) | Address::Udp(HostPort::Name(_)))
    }
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> HostPort {
        HostPort::Ip(address)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPort::Ip(address) => write!(out, "{address}"),
            HostPort::Name(name) => out.write_str(name),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_a_name() {
        assert_eq!(
            Address::parse("127.0.0.1:1"),
            Ok(Address::Tcp(HostPort::Ip(([127, 0, 0, 1], 1).into())))
        );
        let named = Address::parse("udp:localhost:11211").expect("in every /etc/hosts");
        assert_eq!(named, Address::Udp(HostPort::Name("localhost:11211".to_owned())));
        assert_eq!((named.is_named(), named.to_string().as_str()), (true, "udp:localhost:11211"));
        let six = Address::parse("[::1]:11211").expect("an IPv6 address");
        assert_eq!((six.is_named(), six.to_string().as_str()), (false, "[::1]:11211"));
    }

    #[test]
    fn a_name_that_does_not_resolve_is_refused() {
        // RFC 6761: `.invalid` never resolves.
        for text in ["nobody.invalid:11211", "localhost", "localhost:port", ":", ""] {
            assert!(Address::parse(text).expect_err(text).starts_with(text));
        }
    }
}
