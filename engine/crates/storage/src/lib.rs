//! The item store: a hash table and segmented memory with a limit. It makes no allocation for an item, and
//! readers never wait. It does no I/O and reads no clock: every call gets the time, in seconds since
//! the epoch.
//!
//! The same code runs behind the server and inside a program ([`Store::new`]), and in memory that
//! processes share ([`Store::create`], [`Store::open`]).
//!
//! ```
//! use cachemark_storage::{Mode, Outcome, Store};
//!
//! let (store, now_s) = (Store::new(64 << 20), 1_800_000_000);
//! // Flags 7, for 60 seconds.
//! let stored = store.store(Mode::Set, b"greeting", 7, 60, b"hello", now_s);
//! assert_eq!(stored, Some(Outcome::Stored));
//! // The value is not copied; the result is what the closure returns.
//! assert_eq!(store.get(b"greeting", None, now_s, |item| item.value.len()), Some(5));
//! assert_eq!(store.get(b"greeting", None, now_s + 60, |_| ()), None);
//! ```
//!
//! Processes share a store by the path of its file. A reader of another process sees the value at once:
//!
//! ```
//! use cachemark_storage::{Mode, Store};
//!
//! let now_s = 1_800_000_000;
//! let path = std::env::temp_dir().join(format!("cachemark-example-{}", std::process::id()));
//! let writer = Store::create(&path, 8 << 20, None)?;
//! let reader = Store::open(&path)?;
//! writer.store(Mode::Set, b"visits", 0, 0, b"41", now_s);
//! writer.arithmetic(b"visits", 1, true, now_s);
//! assert_eq!(reader.get(b"visits", None, now_s, |item| item.value.to_vec()), Some(b"42".to_vec()));
//! std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Design
//!
//! **Segments, not slab classes.** Items are written one behind the other into segments of up to 256 KiB.
//! Each has a header of 8 bytes and, only if they are not implied, flags, expiry and cas number. A slab
//! class wastes the rest of each chunk (a tenth and more at memcached's growth factor of 1.25) and needs
//! links for its LRU list. A segment wastes a few bytes at its end, and the order of eviction is the order
//! of segments, with two bits in the table for each item. The price: an overwritten item leaves dead bytes
//! behind. Segments with many dead bytes are compacted before a live item is evicted
//! (`region/evict.rs`). An item larger than half a segment has segments of its own.
//!
//! **A table with one word for each item** (`items/slot.rs`): 16 bits of the hash, the item's offset, and
//! its uses. A bucket is a cache line. Each key has two buckets and goes to the emptier one
//! (`region/buckets.rs`), so that nine tenths of the slots are used, and a miss reads two cache lines and no
//! item. The table grows one bucket at a time. With a fixed hash power it does not grow, and buckets get
//! overflow buckets.
//!
//! **Eviction** is S3-FIFO on segments (`region/evict.rs`): an item that is not read soon after it was
//! stored is evicted early, so that a scan does not replace the items that are in use.
//!
//! **Memory limit.** Table, metadata and segments together stay below the limit: when the table grows, a
//! segment is returned to the system.
//!
//! **Readers** take no lock and execute no fence. In one process, a reader increments counters of its own
//! thread when it enters and leaves (`reclamation/thread_index.rs`), and a writer reuses memory only after
//! a grace period, when all readers that could see it have left (`reclamation/grace_periods.rs`). The
//! writer pays for the fences of both sides (`reclamation/asymmetric_fence.rs`). So a reader gets the
//! item's own bytes, without a copy. A reader of shared memory cannot be waited for, because its process
//! may die: it copies the item and checks afterwards that nothing was overwritten meanwhile
//! (`region/optimistic_read.rs`). Three kinds of reads lock the item's region: a read that also sets an
//! exptime, one that finds an expired item and removes it, and the first after a flush is due.
//!
//! **Writers** lock one of up to four regions, each of which is a store of its own. Between processes the
//! lock survives the death of its holder (`region/robust_mutex.rs`, `region/recovery.rs`).
//!
//! `unsafe` is used where bytes of segments are read and written, and for the mutex of the system.
//! Everything else that threads share is an atomic.

mod counters;
mod items;
mod memory;
mod reclamation;
mod region;
mod size_classes;
mod store;
mod table;

pub use counters::Counters;
pub use items::item::Item;
pub use items::marks::Marks;
pub use memory::layout::LIMIT_BYTES_MIN;
pub use region::EvictionObserver;
pub use region::lookup::Lookup;
pub use region::optimistic_read::SharedValue;
pub use size_classes::{ClassUsage, SizeClasses};
pub use store::Store;
pub use store::entry::{Content, Entry};
pub use store::file::Owner;
pub use store::outcome::{Arithmetic, Deletion, Mode, Outcome, expires_s};
pub use store::reservation::Reservation;
pub use store::usage::Usage;

/// The example of the README is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
