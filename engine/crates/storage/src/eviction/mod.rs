//! Segments: how they are filled, and what leaves when memory is full.

mod evict;
pub mod reclaim_batch;
#[cfg(test)]
mod reclaim_test;
pub mod segment_state;
mod segments;
