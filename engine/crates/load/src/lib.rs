//! The native client: plays a tape against a memcached server and records what it took.
//!
//! `player` decides (when, what, on which connection), `connection` turns operations into bytes and
//! bytes into completions, `judge` says whether a reply is right, `tally` records. `event_loop`
//! drives them on a clock and connections that are given to it (`outside`): on real ones by
//! `client`, which has the threads, and on scripted ones by the fidelity cases.

mod client;
mod clock;
mod connection;
mod event_loop;
mod judge;
mod outside;
mod pending;
mod player;
mod socket;
mod sockets;
mod spread;
mod tally;

pub use client::{Client, Configuration, Control, Limits, PrepareError, Session, cpu_times};
pub use event_loop::{EventLoop, Links, Shared};
pub use outside::{Clock, Nap, Network, Ready};
pub use player::{Player, Share, Window};
pub use socket::{Address, Stream};
pub use spread::{Hashing, Spread};
pub use tally::{Failure, Figures, KindTally, Tally, encode_histogram, percentile_ns};
