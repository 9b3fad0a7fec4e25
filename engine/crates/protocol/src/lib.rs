//! memcached's protocols as pure functions over bytes: no I/O, no state, no clock.
//!
//! Of the classic text protocol, `request` is what a server reads, `encode` what a client writes,
//! `reply` what a client reads. `binary` and `meta_request` are the other two protocols on a server's
//! side, `binary_client` and `meta_client` on a client's. `sink` is what a client's requests are written to.

pub mod binary;
pub mod binary_client;
pub mod encode;
mod keys;
pub mod meta_client;
pub mod meta_request;
pub(crate) mod refusal;
pub mod reply;
pub mod request;
pub mod sink;
mod usual;
pub mod words;
