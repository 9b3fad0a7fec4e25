//! The verbs `null-server` and `null-client`: the least CPU time that a server and a client can take.

pub mod client;
pub mod server;
