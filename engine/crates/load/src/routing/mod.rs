//! Which server holds a key, and the view of the tape that follows from it.

mod hashes;
mod key_routing;
mod tape_view;

pub use key_routing::KeyRouting;
pub use tape_view::TapeView;
