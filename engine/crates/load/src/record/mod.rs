//! The records of a window: counts and histograms, by kind of operation and over time.

mod buckets;
mod call_log;
mod groups;
mod histogram;
mod intervals;
mod kind;
mod metrics;
mod recorder;
mod section_buckets;
mod sections;
mod timeline;
mod window;

pub(crate) use call_log::remember_wrong_value;
pub use call_log::{CallOutcome, LoggedCall, LoggedCalls};
pub use histogram::{encode_histogram, percentile_ns};
pub use intervals::{Interval, Intervals};
pub use kind::KindMetrics;
pub use metrics::Metrics;
pub(crate) use recorder::Recorder;
pub use section_buckets::SECTION_COUNT;
pub use sections::{Section, Sections};
pub use timeline::{Timeline, TimelineSlice};
pub use window::Window;
