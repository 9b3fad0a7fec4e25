//! The cases, and the bugs that they find.

mod cases;
mod injected_bugs;
