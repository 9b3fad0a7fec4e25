//! The embedded server: one parser and executor under two ways of doing I/O.
//!
//! ```text
//!            accept thread
//!                 │ admits
//!      ┌──────────┴──────────┐
//!  blocking: a thread     events: N loops, each an epoll
//!  for each connection    set of many connections
//!      └──────────┬──────────┘
//!        session (bytes in, bytes out)
//!                 │
//!         storage (shards behind locks)
//! ```

mod accept;
mod accounts;
mod binary;
mod blocking;
mod events;
mod execute;
mod guest;
mod login;
mod meta;
mod session;
mod state;
mod stats;
mod stream;
mod tls;
mod udp;

pub use accept::{Endpoint, Server, ServerError, start};
pub use accounts::Accounts;
pub use session::{Fed, Session};
pub use state::{IoMode, Settings, State};
pub use tls::Tls;
