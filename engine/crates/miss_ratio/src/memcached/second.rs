//! The seconds that the automover looks back at.

/// The most that any release looks back at.
pub(super) const MOST_SECONDS: usize = 30;

/// Releases of memcached, as far as they move pages in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// A page moves without the items that find no free chunk: they are lost.
    Before1634,
    /// Items of a page that moves take the place of the oldest ones.
    Since1634,
}

impl Release {
    /// How far the automover looks back.
    pub(super) fn window_s(self) -> usize {
        match self {
            Release::Before1634 => MOST_SECONDS,
            Release::Since1634 => 10,
        }
    }
}

/// The automover's facts of a class in a second.
#[derive(Clone, Copy, Default)]
pub(super) struct Second {
    pub(super) age_s: u32,
    pub(super) evicted: bool,
    pub(super) evicted_part: f64,
    pub(super) dirty: bool,
}
