//! The embedded server over real sockets, beside the real memcached.

mod binary;
mod common;
mod counted_commands;
mod counters;
mod differential;
mod observing;
mod random_bytes;
mod robustness;
mod targets;
mod text;
mod tls;
mod tls_keys;
mod tools;
mod transports;
