//! A proxy between memcached clients and their server that misbehaves on command.
//!
//! ```text
//!  commands ──▶ proxy (event loop, one thread) ──▶ listener: accepts, refuses or lets clients wait
//!                 │
//!                 ▼
//!  client ──▶ connection ──▶ upstream      framer: where each request and reply begins
//!         ◀──            ◀──               edits: what a fault makes of a request or reply
//!                 │
//!                 ▼
//!                log: connections, faults, and each reply that was changed
//! ```
//!
//! Without a fault, bytes are passed on as soon as they arrive, whatever they are. The framer only follows
//! them, so that a fault can begin at the next request or reply and never in the middle of one.
//!
//! `distance` is another proxy of the same sockets: it holds bytes for a time, and looks at none.

mod command;
mod command_sender;
mod connection;
pub mod distance;
mod edits;
mod fault;
mod frames;
mod kinds;
mod listener;
mod log;
mod proxy;

pub use command::{Command, MAX_COMMAND_BYTES, parse_command};
pub use command_sender::CommandSender;
pub use fault::Fault;
pub use kinds::{KINDS, Kind, Parameter, ParameterType};
pub use proxy::{Answer, FaultProxy, FaultProxySettings};
