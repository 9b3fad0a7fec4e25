//! The bytes of an item, and the slot that leads to it.

pub mod item;
pub mod marks;
pub mod number;
pub mod slot;
