//! Reads cache traces: Twitter's, CacheLib's, libCacheSim's, memcached's own log, CSV, and cachemark's own format. Writes its own and CSV.
//!
//! Each format of lines is a file that turns a line into an event; `oracle_general` and `file`, cachemark's own, have records. `unpack` and `lines` read a
//! trace, `events` puts its events in order, `import` collects them as a recording, `convert` writes them. An error names the line, and what is left out is counted by its reason.

mod anonymous;
mod convert;
mod csv;
mod each_record;
mod event;
mod events;
pub mod file;
mod format;
mod import;
mod kvcache;
mod lines;
mod options;
mod oracle_general;
mod reader;
mod snapshot;
mod twitter;
mod unpack;
mod watch_log;

pub use convert::{
    Conversion, Converted, Ending, Output, Requests, convert, convert_file, convert_requests,
};
pub use csv::Columns;
pub use each_record::{ReadTrace, each_record};
pub use format::Format;
pub use import::{ImportedTrace, import, import_file};
pub use options::{Gets, ImportOptions};
pub use snapshot::{ITEM, SNAPSHOT_SECONDS, Snapshot};
pub use unpack::unpacked;
pub use watch_log::watch_time_ns;
