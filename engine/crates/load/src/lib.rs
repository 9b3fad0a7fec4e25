//! The native client: plays a tape against a memcached server and records what it took.
//!
//! `player` decides (when, what, on which connection; `player/issuing` is its sending half), `connection` turns operations into bytes and
//! bytes into completions in a protocol (`wire`), `judge` says whether a reply is right, `ledger` and
//! `tally` record. `event_loop` drives them on a clock and connections that are given to it (`outside`): on real ones by
//! `client`, which has the threads, and on scripted ones by the fidelity cases.

mod client;
mod connection;
mod event_loop;
mod in_process;
mod io_traits;
mod operation;
mod options;
mod player;
mod record;
mod routing;
mod transport;

pub use client::{Client, Control, Limits, PrepareError, Session, cpu_times, stay_on};
pub use connection::{Binary, Meta, Text, Wire};
pub use event_loop::{EventLoop, Links, Shared};
pub use in_process::InProcess;
pub use io_traits::{Clock, Nap, Network, Ready};
pub use operation::{Failure, Figures};
#[cfg(feature = "tls")]
pub use options::Tls;
pub use options::{Address, Configuration, Credentials, Hashing, Io, Way, WireName};
pub use player::{Player, Share};
pub use record::{
    Course, Interval, Intervals, KindTally, SECTIONS, Section, Sections, Slice, Tally, Window,
    encode_histogram, percentile_ns,
};
pub use routing::Spread;
pub use transport::Stream;
