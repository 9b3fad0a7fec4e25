//! The item store in shared memory, by name, for programs in any language.
//!
//! A *named store* is a file in `/dev/shm`. It outlives the process that made it, and is there for every
//! process that may read and write the file, until somebody destroys it. Readers take no lock and make no
//! system call; a writer that is killed leaves the store usable (see `cachemark_storage`).
//!
//! [`NamedStore`] is the interface for Rust; `c_interface.rs` is the one for everybody else, declared in
//! `include/cachemark_store.h`.

mod c_interface;
mod clock;
mod dump;
mod named_store;
mod status;

pub use cachemark_storage::Owner;
pub use clock::now_s;
pub use dump::write_items;
pub use named_store::{NamedStore, Settings, free_bytes};
