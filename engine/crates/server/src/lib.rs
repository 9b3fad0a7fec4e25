//! The embedded server: one parser and executor under four ways of doing I/O.
//!
//! ```text
//!            accept thread
//!                 │ admits
//!      ┌──────────┴──────────┐
//!  blocking: a thread     events, busy, uring: N loops, each an
//!  for each connection    epoll set or a ring of many connections
//!      └──────────┬──────────┘
//!        session (bytes in, bytes out)
//!                 │
//!         storage (shards behind locks)
//! ```

mod accept;
mod accounts;
mod ahead;
mod binary;
mod blocking;
mod dump;
mod events;
mod execute;
mod guest;
mod inbox;
mod last_flags;
mod login;
mod meta;
mod meta_reply;
mod meta_set;
mod session;
mod state;
mod stats;
mod stream;
mod tls;
mod udp;
mod unix;
mod uring;

pub use accept::{Endpoint, Server, ServerError, start};
pub use accounts::Accounts;
pub use session::{Fed, Session};
pub use state::{IoMode, Settings, State};
pub use tls::Tls;
pub use udp::answer_datagram;
