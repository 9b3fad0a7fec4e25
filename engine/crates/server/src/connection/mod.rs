//! A connection: its socket, its input, and its place in the server's counts.

pub mod direct_send;
pub mod guard;
pub mod input_buffer;
pub mod stream;
pub mod tls_stream;
