//! The native client: plays a tape against a memcached server and records what it took.
//!
//! `player` decides (when, what, on which connection; `player/issuing` is its sending half), `connection` turns operations into bytes and
//! bytes into completions in a protocol (`wire`), `judge` says whether a reply is right, `ledger` and
//! `metrics` record. `event_loop` drives them on a clock and connections that are given to it (`outside`): on real ones by
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

pub use client::{Client, PhaseLimits, PrepareError, RunControl, RunResult, cpu_times, pin_to_cpu};
pub use connection::{Binary, Meta, Text, Wire};
pub use event_loop::{EventLoop, SharedState, ThreadConnections};
pub use in_process::InProcess;
pub use io_traits::{Clock, Network, Ready, WaitLimit};
pub use operation::{Failure, OperationCounts};
#[cfg(feature = "tls")]
pub use options::TlsTrust;
pub use options::{
    Address, ClientOptions, ConnectionOptions, Credentials, Hashing, IoBackend, WireName,
};
pub use player::{Player, WorkSlice};
pub use record::{
    Interval, Intervals, KindMetrics, Metrics, SECTIONS, Section, Sections, Timeline,
    TimelineSlice, Window, encode_histogram, percentile_ns,
};
pub use routing::KeyRouting;
pub use transport::Stream;
