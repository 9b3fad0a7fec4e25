//! Named stores, from Rust and C.

mod c_program;
mod names;
