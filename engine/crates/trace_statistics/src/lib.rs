//! The traffic of a trace. Records go in one after the other, in the order of their times, and a document comes
//! out. The memory is bounded however long the trace is.
//!
//! Figures of requests are exact: mix, sizes, expiry times, bursts, multigets. Figures of keys are
//! counted for all keys as long as there are few enough, and then for a part of them, chosen by their hash; the
//! document has that part, and the error that comes from it.

mod bursts;
mod collector;
mod document;
mod hot_keys;
mod keys;
mod kind;
mod multigets;
mod popularity;
mod reads;
mod sizes;
mod timeline;
mod ttls;

pub use bursts::Dispersion;
pub use collector::Collector;
pub use document::TraceStatistics;
pub use hot_keys::HotKey;
pub use keys::{Estimate, KeyStatistics, KeysOverTime};
pub use multigets::MultigetStatistics;
pub use popularity::{Popularity, RankShare, fit_exponent};
pub use reads::Reads;
pub use sizes::SizeDistribution;
pub use timeline::TimeWindow;
pub use ttls::{TtlShare, TtlStatistics};
