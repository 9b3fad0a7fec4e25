//! The client against real and scripted servers.

mod backends;
mod clusters;
mod common;
mod datagrams;
mod faulty_servers;
mod in_process;
mod large_values;
mod outages;
mod paused_client;
