//! Curves beside naive models.

mod held;
mod lru;
mod prediction;
