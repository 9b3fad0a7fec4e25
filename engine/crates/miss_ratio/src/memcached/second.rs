//! The seconds that the automover looks back at.

pub(super) const WINDOW_S: usize = 10;

/// The automover's facts of a class in a second.
#[derive(Clone, Copy, Default)]
pub(super) struct Second {
    pub(super) age_s: u32,
    pub(super) evicted: bool,
    pub(super) evicted_part: f64,
    pub(super) dirty: bool,
}
