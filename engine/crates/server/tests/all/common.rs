//! A server in this process, and a client of it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use cachemark_server::{Endpoint, IoMode, Server, Settings, State, start};

pub fn settings(io: IoMode) -> Settings {
    Settings {
        io,
        threads: 2,
        memory_bytes: 8 << 20,
        item_bytes_max: 1 << 20,
        max_connections: 64,
        ..Settings::default()
    }
}

pub fn serve(io: IoMode) -> (Server, Arc<State>) {
    let state = Arc::new(State::new(settings(io), "1.2.3"));
    let server = start(&[Endpoint::Tcp("127.0.0.1:0".to_owned())], &state).expect("a server");
    (server, state)
}

pub fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.addresses[0]).expect("a server that listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream
}

pub fn ask(stream: &mut TcpStream, request: &[u8], length: usize) -> Vec<u8> {
    stream.write_all(request).expect("a server that reads");
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply).expect("a server that answers");
    reply
}
