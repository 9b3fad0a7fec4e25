//! The time in tests.

/// The time at which properties of the server and of the store are tested.
pub const NOW_S: u32 = 1_700_000_000;
