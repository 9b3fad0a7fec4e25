//! Command-line options that several verbs share, and how people write their values.

pub mod connection_options;
pub mod extent;
pub mod presets;
mod schedule_name;
pub mod tape_file;
pub mod tape_length;
pub mod workload;
mod workload_plan;
pub mod workload_settings;
