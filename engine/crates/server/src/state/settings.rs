//! How a server is set up.

/// How connections are served: I/O and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// A thread for each connection.
    Blocking,
    /// Event loops, each with many connections.
    Events,
    /// Event loops on io_uring, if the kernel has it: see `IoMode::unavailable_reason`.
    Uring,
    /// Event loops that poll for a while before they sleep.
    Busy,
}

impl IoMode {
    const ALL: [IoMode; 4] = [IoMode::Blocking, IoMode::Events, IoMode::Uring, IoMode::Busy];

    /// The modes that work on this machine.
    pub fn available() -> impl Iterator<Item = IoMode> {
        IoMode::ALL.into_iter().filter(|io| io.unavailable_reason().is_none())
    }

    /// Why this mode does not work on this machine; `None` if it does.
    pub fn unavailable_reason(self) -> Option<String> {
        if self == IoMode::Uring { cachemark_uring::unavailable_reason() } else { None }
    }

    pub fn name(self) -> &'static str {
        match self {
            IoMode::Blocking => "blocking",
            IoMode::Events => "events",
            IoMode::Uring => "uring",
            IoMode::Busy => "busy",
        }
    }
}

/// The settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub io: IoMode,
    /// How many event loops there are; unused in blocking mode.
    pub threads: usize,
    pub memory_bytes: usize,
    /// The largest item, with the bytes of memcached's own item header.
    pub item_bytes_max: u64,
    pub max_connections: u64,
}
