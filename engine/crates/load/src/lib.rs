//! The native client: it plays a tape against memcached servers and records how long operations took.
//!
//! The modules, from low to high: `options` (the user's request), `io_traits` (the clock and the
//! connections that the event loop needs), `routing` (which server holds a key), `operation` (one
//! operation in flight), `record` (counts and histograms), `connection` (operations to bytes, bytes to
//! completions), `player` (which operation is sent when), `event_loop` (drives a player on a clock and
//! connections), `transport` (the real clock and sockets), `client` (threads and the phases of a
//! trial). `in_process` plays a tape on the item store, without a network.
//!
//! No module imports one that stands after it in this list.

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

pub use client::{
    Client, PhaseLimits, PrepareError, RunControl, RunResult, SliceDriver, SliceLimits, cpu_times,
    pin_to_cpu,
};
pub use connection::{Binary, Meta, Text, Wire};
pub use event_loop::{EventLoop, SharedState, ThreadConnections};
pub use in_process::InProcess;
pub use io_traits::{Clock, Network, Ready, WaitLimit};
pub use operation::{Failure, OperationCounts};
pub use options::{
    Address, ClientOptions, ConnectionOptions, Credentials, Hashing, HostPort, IoBackend, Refill,
    WireName,
};
#[cfg(feature = "tls")]
pub use options::{TlsFiles, TlsTrust};
pub use player::{Player, SliceResult, WorkSlice};
pub use record::{
    CallOutcome, Interval, Intervals, KindMetrics, LoggedCall, LoggedCalls, Metrics, SECTION_COUNT,
    Section, Sections, Timeline, TimelineSlice, Window, encode_histogram, percentile_ns,
};
pub use routing::{KeyRouting, jenkins_one_at_a_time, ketama_point, ketama_ring, server_at};
pub use transport::Stream;
