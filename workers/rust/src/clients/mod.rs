//! One file for each library.

pub mod async_memcached;
pub mod memcache;
pub mod memcache_exp;
pub mod moka;
pub mod null;
