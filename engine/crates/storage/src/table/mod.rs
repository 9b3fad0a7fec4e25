//! Parts of the hash table: the hash of keys, and the search for tags in buckets.

pub mod hash;
pub mod tags;
