//! The common part of all verbs: how a process ends, prints, writes files, and reads what people type.

pub mod cpus;
pub mod foreign_text;
pub mod process;
pub mod times;
pub mod units;
pub mod whole_file;
