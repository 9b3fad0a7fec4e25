//! The real clock and the real sockets, with the handshakes and logins on them.

mod background_connect;
mod clock;
mod epoll;
mod login;
mod ring;
mod sleep;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod traits;
mod udp;

pub(crate) use clock::{Monotonic, wait_until};
pub(crate) use epoll::EpollSockets;
pub(crate) use ring::Ring;
pub use stream::Stream;
#[cfg(feature = "tls")]
pub(crate) use tls::TlsStream;
pub(crate) use udp::{DATAGRAM_BYTES, HEADER_BYTES, UdpStream};
