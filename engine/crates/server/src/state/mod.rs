//! The state that all connections share: settings, the store, counters, users, the log that clients watch.

pub mod accounts;
pub mod clock;
pub mod cram_md5;
pub mod event_lines;
pub mod event_log;
pub mod peer;
pub mod prefixes;
pub mod server_state;
pub mod settings;
pub mod size_classes;
pub mod stats;
pub mod tls;
mod tls_ciphers;
mod tls_key;
mod tls_p521;
pub mod traffic;
pub mod tuning;
