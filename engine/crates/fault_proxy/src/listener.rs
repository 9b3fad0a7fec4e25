//! The listening socket: it accepts, refuses, or lets clients wait in a full queue.

use std::io;
use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, SockAddr, Socket, Type};

const BACKLOG: i32 = 1024;
/// With a backlog of 0 the kernel still lets one connection wait. A second one proves that the queue is full.
const FILLERS: usize = 2;

/// The treatment of new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Accepting,
    /// No socket listens.
    Refusing,
    /// The queue is full, and no connection is accepted.
    Full,
}

pub struct Listener {
    address: SocketAddr,
    /// Bound and never listening: it keeps the port while no socket listens on it.
    _holder: Socket,
    socket: Option<Socket>,
    mode: Mode,
    /// Our own connections, which fill the queue.
    fillers: Vec<Socket>,
    filler_addresses: Vec<SocketAddr>,
}

fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

impl Listener {
    /// Listen. Port 0: the system chooses one.
    pub fn new(address: SocketAddr) -> io::Result<Listener> {
        let holder = bound(address)?;
        let address = holder.local_addr()?.as_socket().expect("an IP address");
        let mut listener = Listener {
            address,
            _holder: holder,
            socket: None,
            mode: Mode::Refusing,
            fillers: Vec::new(),
            filler_addresses: Vec::new(),
        };
        listener.set_mode(Mode::Accepting)?;
        Ok(listener)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The socket that listens. It is another one after `Refusing`.
    pub fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    pub fn set_mode(&mut self, mode: Mode) -> io::Result<()> {
        if mode == Mode::Refusing {
            (self.socket, self.mode) = (None, mode);
            self.fillers.clear();
            return Ok(());
        }
        if self.socket.is_none() {
            self.socket = Some(bound(self.address)?);
        }
        let socket = self.socket.as_ref().expect("just made");
        self.fillers.clear();
        // A socket that listens already gets another backlog.
        socket.listen(if mode == Mode::Full { 0 } else { BACKLOG })?;
        self.mode = mode;
        if mode == Mode::Full { self.fill() } else { Ok(()) }
    }

    fn fill(&mut self) -> io::Result<()> {
        for _ in 0..FILLERS {
            let filler = Socket::new(Domain::for_address(self.address), Type::STREAM, None)?;
            filler.set_nonblocking(true)?;
            match filler.connect(&SockAddr::from(self.address)) {
                Err(error)
                    if error.raw_os_error()
                        != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
                {
                    return Err(error);
                }
                _ => {}
            }
            self.filler_addresses.extend(filler.local_addr()?.as_socket());
            self.fillers.push(filler);
        }
        Ok(())
    }

    /// The next client that connected; `None` if none waits.
    pub fn accept(&mut self) -> io::Result<Option<TcpStream>> {
        let Some(socket) = self.socket.as_ref().filter(|_| self.mode == Mode::Accepting) else {
            return Ok(None);
        };
        loop {
            match socket.accept() {
                Ok((client, address)) => {
                    let address = address.as_socket();
                    let filler = self.filler_addresses.iter().position(|own| Some(*own) == address);
                    match filler {
                        Some(filler) => drop(self.filler_addresses.swap_remove(filler)),
                        None => return Ok(Some(client.into())),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.filler_addresses.clear();
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
