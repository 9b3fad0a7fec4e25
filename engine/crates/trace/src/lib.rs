//! Traces of caches as tapes: Twitter's, CacheLib's, memcached's own log, and plain CSV.
//!
//! `formats` turns a line into an event (one format = one file), `lines` opens a file and unpacks
//! it, `import` makes one recording of all events. A line that cannot be read is one error that
//! names it.

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
