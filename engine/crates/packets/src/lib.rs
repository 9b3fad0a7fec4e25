//! memcached's requests from captured packets.
//!
//! | module | holds |
//! |---|---|
//! | `capture_file` | packets of pcap and pcapng files |
//! | `frame` | from a packet to the bytes of a TCP segment or a datagram |
//! | `stream` | one direction of a TCP connection, in order, with holes |
//! | `order` | segments that wait for those before them |
//! | `requests`, `replies` | what the bytes of each direction say |
//! | `exchange` | requests and the replies to them |
//! | `proof` | whether a reply belongs to the request that it is taken for |
//! | `connection`, `datagrams` | the exchanges of TCP and of UDP |
//! | `book` | operations until their time and their reply are certain; counts of what is missing |
//! | `capture` | all of it, as a source of a trace |

mod awaited;
mod binary_reply;
mod book;
mod capture;
mod capture_file;
mod connection;
#[cfg(test)]
mod damaged;
mod datagrams;
mod exchange;
mod frame;
mod lengths;
mod meta_reply;
mod old_packet;
mod order;
mod proof;
mod replies;
mod requests;
mod stream;

pub use capture::{Capture, Limits, Ports};
