//! The embedded server: one parser and one implementation of each command, under four kinds of I/O.
//!
//! ```text
//!  transports:      acceptor                                     udp
//!                   │ hands each connection to                   │ a thread for each socket
//!        ┌──────────┴───────────┐                                │
//!     blocking                event_loop                         │
//!     a thread for each       N threads: epoll (events, busy)    │
//!     connection              or uring, each with many           │
//!        │                    connections, from its inbox        │
//!        └──────────┬───────────┘                                │
//!  session:      Session ◀───────────────────────────────────────┘
//!                bytes in, bytes out; owns the ConnectionState, looks ahead
//!                   │ dispatches each request
//!  commands:     text · meta · binary ──▶ state: settings, users, counters, stats
//!                   │
//!  storage:      Store: plain gets take no lock, every other command locks the item's region
//! ```
//!
//! A connection that sends `watch` leaves its loop: the thread of `watchers` writes the lines of the event log to it.
//! With an idle timeout, the thread of `idle` shuts down connections that send nothing.
//!
//! A get that finds an expired item, or that comes first after a flush, takes the lock too: see the
//! documentation of `cachemark_storage`.

mod commands;
mod connection;
mod requests;
mod session;
mod state;
mod transports;

pub use session::{Fed, Session};
pub use state::accounts::Accounts;
pub use state::server_state::{Shutdown, State};
pub use state::settings::{Commands, IoMode, Protocol, Settings};
pub use state::tls::{ClientCertificates, Tls, TlsSettings};
pub use state::traffic::{ConnectionTraffic, Segments, TrafficLog};
pub use state::tuning::Tuning;
pub use transports::listeners::{Endpoint, Security, ServerError};
pub use transports::server::{Server, start};
pub use transports::udp::answer_datagram;
