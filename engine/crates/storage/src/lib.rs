//! The item store: bounded memory, no allocation for an item, readers that wait for nobody. No I/O
//! and no clock; every call is told the time, in seconds since the epoch.
//!
//! One code in three places: behind the server and inside a program ([`Store::new`]), and in memory
//! that processes share ([`Store::create`], [`Store::open`]).
//!
//! ```
//! use cachemark_storage::{Mode, Outcome, Store};
//!
//! let (store, now_s) = (Store::new(64 << 20), 1_800_000_000);
//! // Flags 7, for 60 seconds.
//! let stored = store.store(Mode::Set, b"greeting", 7, 60, b"hello", now_s);
//! assert_eq!(stored, Some(Outcome::Stored));
//! // The value is read where it lies; what the closure makes of it is the answer.
//! assert_eq!(store.get(b"greeting", None, now_s, |item| item.value.len()), Some(5));
//! assert_eq!(store.get(b"greeting", None, now_s + 60, |_| ()), None);
//! ```
//!
//! # Design
//!
//! **Segments, not slab classes.** Items lie one behind the other in segments of up to 256 KiB,
//! each with a head of 8 bytes and, only where they are not implied, flags, expiry and unique
//! number. A slab class wastes what its items do not fill (a tenth and more at memcached's step of
//! 1.25) and keeps links for its order of use; a segment wastes a few bytes at its end, and the
//! order of use is that of the segments, with two bits in the table for each item. The price is that an
//! item that is overwritten leaves dead bytes behind; they are gathered before a living item leaves
//! (`evict.rs`). Items of more than half a segment have segments of their own.
//!
//! **A table of one word for each item** (`slot.rs`): 16 bits of the hash, the place, and how it
//! has been used. Buckets are cache lines; each key has two, and goes to the emptier (`table.rs`).
//! So nine tenths of the slots are in use, and a miss touches two lines and no item. It grows one
//! bucket at a time, or not at all where a hash power is given; then buckets overflow into others.
//!
//! **What leaves** is decided on queues of segments, S3-FIFO's (`evict.rs`): what is not read soon
//! after it was stored leaves early, so that a scan passes what is in use by.
//!
//! **Bounds.** Table, notes and segments together stay below the limit: where the table grows, a
//! segment is given back to the system.
//!
//! **Readers** take no lock and pay for no fence. In one process they count themselves in and out on
//! a line of their own (`line.rs`), and memory is written to again only after they have left
//! (`grace.rs`); whoever wants to write to it pays for the order of both (`barrier.rs`). So a reader
//! has the item's own bytes. Between processes nobody can be waited for: readers check afterwards that
//! nothing was written over meanwhile (`shared.rs`). **Writers** lock one of up to four regions,
//! each a store of its own; between processes with a lock that outlives its holder (`lock.rs`,
//! `mend.rs`).
//!
//! `unsafe` is where bytes of segments are read and written, and at the system's mutex; the rest of
//! what threads share is atomics.

mod barrier;
mod counters;
mod each;
mod entry;
mod evict;
mod grace;
mod hash;
mod item;
mod layout;
mod line;
mod lock;
mod memory;
mod mend;
mod number;
mod region;
mod rules;
mod segments;
mod shared;
mod slot;
mod stock;
mod store;
mod table;
mod tags;
mod wanted;
mod writer;

pub use counters::Counters;
pub use entry::{Content, Entry};
pub use item::{Item, Marks};
pub use layout::LIMIT_BYTES_LEAST;
pub use rules::{Arithmetic, Deletion, Mode, Outcome, expires_s};
pub use shared::InPlace;
pub use store::{Store, Usage};
pub use wanted::Wanted;
