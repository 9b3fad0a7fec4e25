//! Traces: each format, and what is damaged.

mod columns;
mod common;
mod file;
mod formats;
mod packed;
mod snapshot;
mod watch_log;
