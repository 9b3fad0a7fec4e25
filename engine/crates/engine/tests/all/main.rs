//! The program `cachemark-engine`, started as users start it.

mod awake;
mod common;
mod descriptors;
mod memcached;
mod modes;
mod pressure;
mod refusals;
mod store;
