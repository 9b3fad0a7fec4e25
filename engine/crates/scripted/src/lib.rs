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

mod agenda;
mod clock;
mod frame;
mod line;
mod log;
mod plan;
mod script;
mod server;

pub use clock::monotonic_ns;
pub use frame::{Dialect, Kind, frame};
pub use log::{Fate, Log, Record};
pub use plan::{Plan, Reply};
pub use script::{Script, ScriptError};
pub use server::{Scripted, ScriptedSettings};
