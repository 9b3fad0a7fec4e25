//! The fidelity server: a memcached whose reads are answered by a script, to the microsecond.
//!
//! ```text
//!  epoll ──▶ line (bytes in) ──▶ frame (one request) ──▶ session of the embedded server (reply)
//!    ▲                              │ a read                        │
//!    │ sleeps, then spins           ▼                               ▼
//!    └──────── agenda ◀──── plan (script, seed) ───────▶ queue of replies, each with its instant
//!                                                                   │
//!                                   log: received, due, first, sent ◀
//! ```
//!
//! Reads are scripted, everything else is answered at once. `stats reset` begins the script and the
//! log anew, so that what a client does before its window is not in them.

mod clock;
mod connection;
mod log;
mod planner;
mod request;
mod script;
mod server;
mod timers;

pub use clock::monotonic_ns;
pub use log::{ReadLog, ReadOutcome, ReadRecord};
pub use planner::{PlannedReply, ReplyPlanner};
pub use request::{ConnectionProtocol, RequestKind, next_request};
pub use script::{Script, ScriptError};
pub use server::{ScriptedServer, ScriptedServerSettings};
