//! Bounds that all three protocols share.

/// The longest key.
pub const KEY_BYTES_MAX: usize = 250;
