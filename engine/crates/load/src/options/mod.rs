//! The options of a client: plain values. `client::supported` checks them.

mod address;
mod client;
mod connection;
mod credentials;
mod hashing;
mod io_backend;
mod refill;
#[cfg(feature = "tls")]
mod tls_trust;
mod wire_name;

pub use address::{Address, HostPort};
pub use client::ClientOptions;
pub use connection::ConnectionOptions;
pub use credentials::Credentials;
pub use hashing::Hashing;
pub use io_backend::IoBackend;
pub use refill::Refill;
#[cfg(feature = "tls")]
pub(crate) use tls_trust::is_ca_of_server;
#[cfg(feature = "tls")]
pub use tls_trust::{TlsFiles, TlsTrust};
pub use wire_name::WireName;
