//! The window of time in which a phase is played.

/// When a window begins and what ends it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub start_ns: u64,
    /// No operation begins, or is due, at or after this instant.
    pub end_ns: u64,
    pub timeout_ns: u64,
    /// How long each part is that is recorded by itself; `None`: the window is not cut.
    pub section_ns: Option<u64>,
}
