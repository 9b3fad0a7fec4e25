//! Tapes through the public interface.

mod common;
mod draws;
mod generations;
mod hostile;
mod integer_distributions;
mod key_distributions;
mod reuse;
mod schedules;
mod tapes;
mod varying_lengths;
