//! Parsers with generated inputs.

mod meta_requests;
mod split_replies;
