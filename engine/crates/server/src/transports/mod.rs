//! How connections come in and are served: sockets, threads and event loops.

mod acceptor;
mod blocking;
mod epoll;
mod event_loop;
mod idle;
mod inbox;
pub mod listeners;
mod report;
pub mod server;
pub mod udp;
mod unix;
mod uring;
mod watchers;
