//! Imports cache traces as recordings: Twitter's, CacheLib's, memcached's own log, and CSV.
//!
//! Each format is a file that turns a line into an event. `lines` opens and unpacks a trace, `import`
//! collects all events. An error names the line.

mod csv;
mod event;
mod format;
mod import;
mod kvcache;
mod lines;
mod twitter;
mod watch_log;

pub use format::Format;
pub use import::{ImportedTrace, import, import_file};
