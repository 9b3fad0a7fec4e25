//! One file for each library, found by build.rs: the file `some_name.rs` has the type `SomeName`, which
//! is the client `some-name`.

use std::fs::File;

use crate::worker::Worker;

/// Serves the requests of a client, by its name.
pub type Serve = fn(&'static str, File);

include!(concat!(env!("OUT_DIR"), "/clients.rs"));
