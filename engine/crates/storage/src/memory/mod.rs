//! The memory that a store lives in, and where everything is in it.

pub mod atomics;
pub mod layout;
pub mod mapping;
