//! The protocols of a client: one file each, dispatched statically.

mod binary;
mod meta;
mod text;
mod traits;

pub use binary::Binary;
pub use meta::Meta;
pub use text::{SpacedText, Text};
pub(crate) use traits::ReplyTo;
pub use traits::Wire;
