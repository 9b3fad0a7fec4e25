//! How a client speaks to its servers.

use super::credentials::Credentials;
use super::io_backend::Io;
#[cfg(feature = "tls")]
use super::tls_trust::Tls;
use super::wire_name::WireName;

/// How servers are spoken to.
#[derive(Clone, Debug, Default)]
pub struct Way {
    pub wire: WireName,
    pub io: Io,
    /// Each of several servers holds every key: writes go to all, reads to the key's home.
    pub replicas: bool,
    /// Who one is, where servers ask.
    pub auth: Option<Credentials>,
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    /// The CPU of each thread; none: wherever the kernel has them run.
    pub cpus: Vec<usize>,
}
