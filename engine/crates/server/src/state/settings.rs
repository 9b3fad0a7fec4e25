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

/// The bytes that memcached's own header adds to key and value when it checks an item's size.
pub const ITEM_HEADER_BYTES: u64 = 59;

/// The size of a slab page of memcached.
pub const PAGE_BYTES: u64 = 1 << 20;

/// Which protocols a connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The first byte of a connection decides.
    Any,
    Text,
    Binary,
}

/// The commands that can be switched on and off.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    pub flush: bool,
    /// `stats cachedump`, `stats detail` and the dumps of `lru_crawler`.
    pub dump: bool,
    pub watch: bool,
    pub shutdown: bool,
    /// `debugtime`, which moves the clock. Only tests need it.
    pub debug: bool,
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
    pub protocol: Protocol,
    pub commands: Commands,
    /// After this number of requests of one connection, others come first. `None`: as soon as the replies are long.
    pub requests_per_event: Option<u32>,
    /// Close a connection that sends nothing for this time; 0: never.
    pub idle_timeout_s: u32,
    /// A socket of IPv6 takes no IPv4, and a name is bound to all its addresses.
    pub families_apart: bool,
    /// How many clients may wait until they are accepted.
    pub backlog: i32,
    /// The permissions of the files of Unix sockets.
    pub unix_mode: u32,
    /// How many bytes of log lines wait for one watcher that does not read.
    pub watcher_buffer_bytes: usize,
    /// A key's prefix, for `stats detail`, ends at this byte.
    pub prefix_delimiter: u8,
}

impl Default for Settings {
    /// memcached's defaults, as far as they are the same here.
    fn default() -> Settings {
        Settings {
            io: IoMode::Events,
            threads: 4,
            memory_bytes: 64 << 20,
            item_bytes_max: 1 << 20,
            max_connections: 1024,
            protocol: Protocol::Any,
            commands: Commands {
                flush: true,
                dump: true,
                watch: true,
                shutdown: false,
                debug: false,
            },
            requests_per_event: None,
            idle_timeout_s: 0,
            families_apart: false,
            backlog: 1024,
            unix_mode: 0o700,
            watcher_buffer_bytes: 256 << 10,
            prefix_delimiter: b':',
        }
    }
}
