//! How connections come in and are served: sockets, threads and event loops.

mod acceptor;
mod blocking;
mod epoll;
mod event_loop;
mod housekeeping;
mod inbox;
pub mod listeners;
mod reading;
mod report;
pub mod server;
pub mod udp;
mod unix;
mod uring;
mod uring_connection;
mod uring_value;
mod watchers;
