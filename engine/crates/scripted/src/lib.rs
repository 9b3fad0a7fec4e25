//! The scripted server: a memcached server whose reads are answered by a script, to the microsecond.
//!
//! ```text
//!  epoll ──▶ connection (bytes in) ──▶ request ──▶ session of the embedded server (reply)
//!    ▲                                    │ a read             │
//!    │ sleeps, then spins                 ▼                    ▼
//!    └──────── timers ◀──── planner (script, seed) ──▶ queue of replies, each with its time
//!                                                              │
//!                              log: received, due, first, sent ◀
//! ```
//!
//! The script answers reads; everything else is answered at once. `stats reset` restarts the script and
//! the log, so that they contain only what a client does in its window.

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
