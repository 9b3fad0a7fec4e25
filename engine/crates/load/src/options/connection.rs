//! The options of a client's connections.

use std::num::NonZeroU64;

use super::credentials::Credentials;
use super::io_backend::IoBackend;
#[cfg(feature = "tls")]
use super::tls_trust::TlsTrust;
use super::wire_name::WireName;

/// How a client connects and talks to its servers.
#[derive(Clone, Debug, Default)]
pub struct ConnectionOptions {
    pub wire: WireName,
    pub io: IoBackend,
    /// Every server holds every key: writes go to all servers, reads go to one of them.
    pub replicas: bool,
    /// A connection (with several servers: one to each) is closed and opened again after this number of operations.
    pub reconnect_after: Option<NonZeroU64>,
    /// Text protocol: a space before the end of each line that may take `noreply`.
    pub trailing_space: bool,
    /// User and password, if the servers require a login.
    pub auth: Option<Credentials>,
    #[cfg(feature = "tls")]
    pub tls: Option<TlsTrust>,
    /// The CPU of each thread. Empty: the kernel chooses.
    pub cpus: Vec<usize>,
}
