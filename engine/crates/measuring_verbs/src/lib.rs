//! The verbs that measure in their own process: the item store, system calls, and callers that miss one key. This
//! crate is optimised, other than the rest of the program.

pub mod bench_store;
pub mod stampede;
pub mod unit_costs;
