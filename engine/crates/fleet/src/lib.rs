//! How many servers a trace needs, and what happens when one of them is lost.
//!
//! [`Ring`] places keys as clients do. [`Traffic`] collects what each followed key asks for; [`Shares`] adds it up for
//! each server of a ring. [`MissCurve`] and [`Thread`] are closed formulas: misses of servers with a part of the keys
//! each, and waiting in an M/G/1 queue, and [`Scalability`] the rate of a server by its
//! threads. [`count_servers`] puts them together for a kind of server. [`FleetPlay`] plays
//! the trace through a fleet of simulated servers, to check the formulas, and loses one of them.

mod count;
mod curve;
mod play;
mod queue;
mod ring;
mod scalability;
mod shares;
mod traffic;

pub use count::{Count, Demand, Limit, MOST_SERVERS, ServerKind, Spread, count_servers};
pub use curve::MissCurve;
pub use play::{FleetPlay, Loss, LossCase, Period, Played, Setting};
pub use queue::Thread;
pub use ring::{Placement, Ring};
pub use scalability::{LawRate, Measured, Scalability};
pub use shares::Shares;
pub use traffic::{KeyTraffic, Traffic};
