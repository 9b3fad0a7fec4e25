//! The hash table.

mod buckets;
pub mod hash;
pub mod slot;
pub mod tags;
