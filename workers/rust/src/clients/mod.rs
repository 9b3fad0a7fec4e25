//! One file for each library.

pub mod async_memcached;
pub mod memcache;
pub mod moka;
pub mod null;
