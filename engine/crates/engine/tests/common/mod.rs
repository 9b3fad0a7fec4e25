//! The engine's server as a process.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than anything takes, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server that is gone with this value.
pub struct Served {
    pub child: Child,
    /// The line it announced itself with.
    pub said: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; it must be reaped either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// A server of two threads that listens on a port of its own.
    pub fn start(io: &str, more: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"))
            .args(["serve", "--listen", "127.0.0.1:0", "--threads", "2", "--io", io])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the engine");
        let stdout = child.stdout.take().expect("a pipe");
        let mut served = Served { child, said: String::new() };
        BufReader::new(stdout).read_line(&mut served.said).expect("an announcement");
        served
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let mut parts = self.said.split('"');
        let address = parts.find(|part| part.starts_with("127.")).expect("an address");
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }
}
