//! The native client: plays a tape against a memcached server and records what it took.
//!
//! `player` decides (when, what, on which connection; `player/issuing` is its sending half), `connection` turns operations into bytes and
//! bytes into completions in a protocol (`wire`), `judge` says whether a reply is right, `ledger` and
//! `tally` record. `event_loop` drives them on a clock and connections that are given to it (`outside`): on real ones by
//! `client`, which has the threads, and on scripted ones by the fidelity cases.

mod access;
mod book;
mod client;
mod clock;
mod connection;
mod course;
mod entrance;
mod event_loop;
mod in_process;
mod intervals;
mod io;
mod judge;
mod kind;
mod lanes;
mod ledger;
mod links;
mod outgoing;
mod outside;
mod pending;
mod player;
mod ring;
mod sections;
mod sets;
mod share;
mod socket;
mod sockets;
mod spread;
mod tally;
mod thinking;
mod times;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod udp;
mod wire;

pub use access::Credentials;
pub use client::{Client, Configuration, Control, Limits, PrepareError, Session, Way, cpu_times};
pub use course::{Course, Slice};
pub use event_loop::{EventLoop, Shared};
pub use in_process::InProcess;
pub use intervals::{Interval, Intervals};
pub use io::Io;
pub use kind::{KindTally, percentile_ns};
pub use lanes::stay_on;
pub use links::Links;
pub use outside::{Clock, Nap, Network, Ready};
pub use player::Player;
pub use sections::{SECTIONS, Section, Sections};
pub use share::{Share, Window};
pub use socket::{Address, Stream};
pub use spread::{Hashing, Spread};
pub use tally::{Failure, Figures, Tally, encode_histogram};
#[cfg(feature = "tls")]
pub use tls::Tls;
pub use wire::{Binary, Meta, Text, Wire, WireName};
