//! Imports cache traces as recordings: Twitter's, CacheLib's, memcached's own log, and CSV.
//!
//! Each format is a file that turns a line into an event. `unpack` and `lines` read a trace, `import` collects all
//! events. An error names the line, and what is left out is counted by its reason.

mod csv;
mod event;
mod format;
mod import;
mod kvcache;
mod lines;
mod options;
mod reader;
mod twitter;
mod unpack;
mod watch_log;

pub use csv::Columns;
pub use format::Format;
pub use import::{ImportedTrace, import, import_file};
pub use options::{Gets, ImportOptions};
