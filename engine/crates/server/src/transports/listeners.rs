//! The sockets that a server listens on.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use socket2::{Domain, Socket, Type};

use crate::connection::stream::Stream;
use crate::state::settings::Settings;
use crate::state::tls::{ClientCertificates, Tls};
use crate::transports::unix::{self, SocketFile};

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `host:port`; port 0 means any free port.
    Tcp(String),
    /// The same, with a rule of its own for TLS where the server has it.
    TcpWith(String, Security),
    Unix(PathBuf),
    /// Datagrams to `host:port`.
    Udp(String),
}

/// A listener's own rule for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    Plain,
    Tls(ClientCertificates),
}

impl Security {
    fn of(self, tls: &Tls) -> Option<Tls> {
        match self {
            Security::Plain => None,
            Security::Tls(clients) => Some(tls.with_clients(clients)),
        }
    }
}

/// Why a server cannot start, with a remedy.
#[derive(Debug)]
pub struct ServerError(pub String);

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A socket that accepts connections.
pub enum Listener {
    Tcp(TcpListener, Option<Tls>),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Its name in `stats conns`.
    pub fn name(&self) -> String {
        let address = self.address().unwrap_or_default();
        match self {
            Listener::Tcp(..) => format!("tcp:{address}"),
            Listener::Unix(..) => address,
        }
    }

    pub fn address(&self) -> io::Result<String> {
        match self {
            Listener::Tcp(listener, _) => listener.local_addr().map(|address| address.to_string()),
            Listener::Unix(_, path) => Ok(format!("unix:{}", path.display())),
        }
    }

    /// Accept a connection: its socket and the client's address.
    pub fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, from) = listener.accept()?;
                stream.set_nodelay(true)?;
                let stream = match tls {
                    Some(tls) => Stream::tls(stream, tls)?,
                    None => Stream::Tcp(stream),
                };
                Ok((stream, format!("tcp:{from}")))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), self.name()))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener, _) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// The sockets that are bound so far.
#[derive(Default)]
pub struct Bound {
    pub listeners: Vec<Listener>,
    pub sockets: Vec<UdpSocket>,
    pub unix_files: Vec<SocketFile>,
}

impl Bound {
    pub fn bind(
        &mut self,
        endpoint: &Endpoint,
        tls: Option<&Tls>,
        settings: &Settings,
    ) -> Result<(), ServerError> {
        let &Settings { unix_mode, families_apart: apart, backlog, .. } = settings;
        let (what, bound) = match endpoint {
            Endpoint::Tcp(address) => {
                (address.clone(), self.bind_tcp(address, tls.cloned(), settings))
            }
            Endpoint::TcpWith(address, security) => {
                let tls = tls.and_then(|tls| security.of(tls));
                (address.clone(), self.bind_tcp(address, tls, settings))
            }
            Endpoint::Unix(path) => {
                let bound = unix::bind(path, unix_mode, backlog).map(|(at, file)| {
                    self.listeners.push(Listener::Unix(at, path.clone()));
                    self.unix_files.push(file);
                });
                (format!("unix:{}", path.display()), bound)
            }
            Endpoint::Udp(address) => (format!("udp:{address}"), self.bind_udp(address, apart)),
        };
        bound.map_err(|error| {
            let remedy = remedy(endpoint, error.kind());
            ServerError(format!("cannot listen on {what}: {error}; {remedy}"))
        })
    }

    fn bind_tcp(&mut self, address: &str, tls: Option<Tls>, settings: &Settings) -> io::Result<()> {
        let bound = match settings.families_apart {
            true => bind_each(address, Type::STREAM, settings.backlog)?,
            false => vec![TcpListener::bind(address)?],
        };
        self.listeners.extend(bound.into_iter().map(|at| Listener::Tcp(at, tls.clone())));
        Ok(())
    }

    fn bind_udp(&mut self, address: &str, apart: bool) -> io::Result<()> {
        match apart {
            true => self.sockets.extend(bind_each::<UdpSocket>(address, Type::DGRAM, 0)?),
            false => self.sockets.push(UdpSocket::bind(address)?),
        }
        Ok(())
    }
}

/// Bind a socket to each address that a name has; it is enough if one of them works. A socket of IPv6 takes no IPv4.
fn bind_each<S: From<Socket>>(address: &str, kind: Type, backlog: i32) -> io::Result<Vec<S>> {
    let bind = |at: SocketAddr| -> io::Result<S> {
        let socket = Socket::new(Domain::for_address(at), kind, None)?;
        if at.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if kind == Type::STREAM {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&at.into())?;
        if kind == Type::STREAM {
            socket.listen(backlog)?;
        }
        Ok(socket.into())
    };
    let (mut bound, mut failed) = (Vec::new(), None);
    for at in address.to_socket_addrs()? {
        match bind(at) {
            Ok(socket) => bound.push(socket),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if bound.is_empty() => Err(error),
        _ => Ok(bound),
    }
}

fn remedy(endpoint: &Endpoint, kind: io::ErrorKind) -> &'static str {
    match (kind, endpoint) {
        (io::ErrorKind::AddrInUse, _) => "stop the program that listens there, or choose another",
        (io::ErrorKind::PermissionDenied, Endpoint::Unix(_)) => "choose a folder of your own",
        (io::ErrorKind::PermissionDenied, _) => "choose a port above 1023",
        (io::ErrorKind::AddrNotAvailable, _) => "choose an address that this machine has",
        (io::ErrorKind::AlreadyExists, _) => "choose a path where nothing is",
        (io::ErrorKind::NotFound, Endpoint::Unix(_)) => "make its folder",
        (_, Endpoint::Unix(_)) => "choose another path",
        _ => "write host:port",
    }
}
