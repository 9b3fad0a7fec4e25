//! Fits a workload to a trace: an experiment whose tape behaves like the trace, and how far the two are apart.
//!
//! Records go into [`Collected`]. [`fit`] estimates each property by itself: popularity ([`fit_ranks`]), sizes and expiry
//! times ([`value_table`]), arrivals. Then it makes the tape and compares it with the trace: distributions by the distance
//! of Kolmogorov and Smirnov, hit ratios by the curves that the crate `miss_ratio` predicts for both. What tapes cannot
//! have is in words.

mod arrivals;
mod collected;
mod curves;
mod distances;
mod experiment;
mod fit;
mod kolmogorov;
mod parts;
mod played;
mod rank_law;
mod recency_law;
mod value_table;

pub use arrivals::fit_arrivals;
pub use collected::Collected;
pub use distances::{Beside, Distance};
pub use experiment::{DrawnKeys, FittedWorkload};
pub use fit::{Fit, fit};
pub use kolmogorov::distance_of;
pub use rank_law::{RankLaw, fit_ranks};
pub use value_table::value_table;
