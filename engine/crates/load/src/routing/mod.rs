//! Which server holds a key, and the view of the tape that follows from it.

mod hashes;
mod key_routing;
mod tape_view;

pub use hashes::{jenkins_one_at_a_time, ketama_point, ketama_ring, server_at};
pub use key_routing::KeyRouting;
pub use tape_view::TapeView;
