//! The bytes of an item.

pub mod item;
pub mod marks;
pub mod number;
