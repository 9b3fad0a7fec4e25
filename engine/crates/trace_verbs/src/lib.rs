//! The verbs `trace` and `record`. They read millions of records, so this crate is optimised.

pub mod record;
pub mod trace;
