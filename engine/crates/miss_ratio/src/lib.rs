//! Predicts how many reads of a trace miss, for several sizes of memory and several policies.
//!
//! A record becomes a [`Request`], which has a hash instead of a key. [`Choice`] takes a part of the keys, and all of
//! the hottest. [`Fills`] makes a [`Step`] of a request: what it does to a cache whose content is another than that of
//! the server where the trace was recorded. Steps go into the policies: [`LruCurve`] (all sizes at once, by stack
//! distances), [`Memcached`] (slab classes, HOT, WARM and COLD) and [`Embedded`] (the embedded server's own store).
//! [`Predictor`] puts these together. [`HeldItems`] tells what there is to tell from a snapshot, without requests.

mod choice;
mod deadlines;
mod embedded;
mod fills;
mod held;
mod hottest;
mod lasting;
mod list;
mod lru_curve;
mod memcached;
mod predictor;
mod request;
mod reuse;
mod slabs;
mod tally;
mod weight_tree;

pub use choice::{Choice, Stand};
pub use embedded::Embedded;
pub use fills::{Fill, FillCounts, Fills, Step, Task};
pub use held::{Amount, GivenUp, Held, HeldItems, Idle};
pub use hottest::{Hottest, HottestKey, Population};
pub use lru_curve::LruCurve;
pub use memcached::{Memcached, Release};
pub use predictor::{Curve, Plan, Point, Policy, Prediction, Predictor};
pub use request::{NO_SIZE, Operation, Request};
pub use slabs::{ITEM_HEADER_BYTES, SlabClass, SlabClasses, item_bytes};
pub use tally::{Followed, GROUPS, Ratio, Tally};
pub use weight_tree::WeightTree;
