//! What all connections share: settings, the store, counters, users.

pub mod accounts;
pub mod clock;
pub mod peer;
pub mod server_state;
pub mod settings;
pub mod stats;
pub mod tls;
