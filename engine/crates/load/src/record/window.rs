//! The time window of a phase.

/// When a window starts and ends.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub start_ns: u64,
    /// No operation starts, or is due, at or after this time.
    pub end_ns: u64,
    pub timeout_ns: u64,
    /// The length of each section; `None` if the window has no sections.
    pub section_ns: Option<u64>,
}
