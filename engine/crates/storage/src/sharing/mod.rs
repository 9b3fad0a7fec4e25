//! A store in memory that several processes share.

pub mod file;
pub mod optimistic_read;
mod recovery;
pub mod robust_mutex;
