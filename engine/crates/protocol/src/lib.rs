//! memcached's protocols as pure functions over bytes: no I/O, no state, no clock.
//!
//! Of the classic text protocol, `request` is what a server reads, `encode` what a client writes,
//! `reply` what a client reads. `binary` is the binary protocol on a server's side, `binary_client` on
//! a client's; `meta_client` is the meta commands on a client's side.

pub mod binary;
pub mod binary_client;
pub mod encode;
pub mod meta_client;
pub mod reply;
pub mod request;
