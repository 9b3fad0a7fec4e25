//! Which server holds a key, and the tape as it is seen where there are several servers.

mod hashes;
mod key_routing;
mod tape_view;

pub use key_routing::KeyRouting;
pub use tape_view::TapeView;
