//! The native client: plays a tape against a memcached server and records what it took.
//!
//! `player` decides (when, what, on which connection), `connection` turns operations into bytes and
//! bytes into completions, `tally` records: all three take the time from outside and do no I/O,
//! so that the same code runs in virtual time. `event_loop` is the thin shell with the sockets and
//! the clock, `client` the threads.

mod client;
mod clock;
mod connection;
mod event_loop;
mod player;
mod socket;
mod spread;
mod tally;

pub use client::{Client, Configuration, Control, Limits, PrepareError, Session};
pub use connection::{Connection, Pending};
pub use player::{Player, Share, Window};
pub use socket::Address;
pub use spread::{Hashing, Spread};
pub use tally::{Failure, Figures, KindTally, Tally, encode_histogram};
