//! memcached's protocols as pure functions over bytes: no I/O, no state, no clock.
//!
//! | module | holds |
//! |---|---|
//! | `text` | classic commands: `request` parses for a server, `encode` and `reply` are the client's side |
//! | `meta` | meta commands: `request` for a server, `client` for a client |
//! | `binary` | the binary protocol: `request` for a server, `client` for a client |
//! | `reply_errors` | error replies, and bytes that are no reply |
//! | `words` | words and numbers of a text line |
//! | `sink` | what a client's requests are written to |
//! | `percent` | percent-encoding of keys |
//! | `limits` | bounds that all three share |

pub mod binary;
pub mod limits;
pub mod meta;
pub mod percent;
pub mod reply_errors;
pub mod sink;
pub mod text;
pub mod words;
