//! How a client speaks to its servers.

use super::credentials::Credentials;
use super::io_backend::IoBackend;
#[cfg(feature = "tls")]
use super::tls_trust::TlsTrust;
use super::wire_name::WireName;

/// How servers are spoken to.
#[derive(Clone, Debug, Default)]
pub struct ConnectionOptions {
    pub wire: WireName,
    pub io: IoBackend,
    /// Each of several servers holds every key: writes go to all, reads to the key's home.
    pub replicas: bool,
    /// Who one is, where servers ask.
    pub auth: Option<Credentials>,
    #[cfg(feature = "tls")]
    pub tls: Option<TlsTrust>,
    /// The CPU of each thread; none: wherever the kernel has them run.
    pub cpus: Vec<usize>,
}
