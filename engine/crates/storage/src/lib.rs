//! The item store: bounded memory, least recently used items leave first. No I/O and no clock;
//! every call is told the time, in seconds since the epoch.

mod entry;
mod number;
mod shard;
mod store;

pub use entry::{Content, Entry};
pub use shard::{Counters, Item, Marks, Mode, Outcome};
pub use store::{Arithmetic, Deletion, Store, Usage, expires_s};
