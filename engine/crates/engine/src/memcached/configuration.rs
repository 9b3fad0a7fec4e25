//! The settings of memcached's command line.

use std::path::PathBuf;

use cachemark_server::{ClientCertificates, Commands, Protocol, Settings, Tuning};

/// Settings as memcached keeps them. Numbers are as they were written, and not checked against each other yet.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// 0 is no port, -1 is any free port.
    pub port: i64,
    pub udp_port: i64,
    /// `-U` or `-p` was given.
    pub udp_port_given: bool,
    pub port_given: bool,
    /// `None` without `-l`: all addresses.
    pub interfaces: Option<Vec<String>>,
    pub unix: Option<PathBuf>,
    pub unix_mode: u32,
    pub memory_mebibytes: i64,
    pub evicts: bool,
    pub connections: u64,
    pub threads: usize,
    pub item_bytes: i64,
    pub protocol: Option<Protocol>,
    pub sasl: bool,
    pub auth_file: Option<PathBuf>,
    pub tls: bool,
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_authorities: Option<PathBuf>,
    pub tls_clients: ClientCertificates,
    pub tls_only_1_3: bool,
    pub tls_ciphers: Option<String>,
    pub commands: Commands,
    pub daemon: bool,
    pub pid_file: Option<PathBuf>,
    pub user: Option<String>,
    pub locks_memory: bool,
    pub dumps_core: bool,
    pub requests_per_event: Option<u32>,
    pub idle_timeout_s: u32,
    pub watcher_buffer_bytes: usize,
    pub prefix_delimiter: u8,
    pub counts_prefixes: bool,
    /// `-o no_hashexpand`: the hash table keeps its size.
    pub fixed_table: bool,
    pub backlog: i32,
    /// `-L`.
    pub huge_pages: bool,
    pub slab_chunk_given: bool,
    /// `-o slab_sizes`, before it is checked.
    pub slab_sizes: Option<String>,
    pub tuning: Tuning,
    /// The options that tune what this server has not.
    pub without_effect: Vec<String>,
}

impl Default for Configuration {
    fn default() -> Configuration {
        let settings = Settings::default();
        Configuration {
            port: 11211,
            udp_port: 0,
            udp_port_given: false,
            port_given: false,
            interfaces: None,
            unix: None,
            unix_mode: settings.unix_mode,
            memory_mebibytes: 64,
            evicts: true,
            connections: settings.max_connections,
            threads: settings.threads,
            item_bytes: settings.item_bytes_max as i64,
            protocol: None,
            sasl: false,
            auth_file: None,
            tls: false,
            tls_certificate: None,
            tls_key: None,
            tls_authorities: None,
            tls_clients: ClientCertificates::Ignored,
            tls_only_1_3: false,
            tls_ciphers: None,
            commands: settings.commands,
            daemon: false,
            pid_file: None,
            user: None,
            locks_memory: false,
            dumps_core: false,
            requests_per_event: None,
            idle_timeout_s: 0,
            watcher_buffer_bytes: settings.watcher_buffer_bytes,
            prefix_delimiter: settings.prefix_delimiter,
            counts_prefixes: false,
            fixed_table: false,
            backlog: settings.backlog,
            huge_pages: false,
            slab_chunk_given: false,
            slab_sizes: None,
            tuning: Tuning::default(),
            without_effect: Vec::new(),
        }
    }
}

/// Why the program ends before it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Print this on stdout: the user asked for it.
    Printed(String),
    /// Print this on stderr and exit with this status.
    Failed { status: u8, message: String },
}

/// The exit statuses of memcached, the first of its own, the others of sysexits.h.
pub const FAILURE: u8 = 1;
pub const USAGE: u8 = 64;
pub const NO_USER: u8 = 67;
pub const SYSTEM: u8 = 71;

pub fn failed(status: u8, message: impl Into<String>) -> Ending {
    Ending::Failed { status, message: message.into() }
}
