//! The embedded server as a process.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than any step takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server process, which is killed when this value is dropped.
pub struct Served {
    pub child: Child,
    /// The line that it printed once it listened.
    pub announcement: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already; it must be reaped in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Start a server with two threads on a free port.
    pub fn start(io: &str, more: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cachemark-engine"))
            .args(["serve", "--listen", "127.0.0.1:0", "--threads", "2", "--io", io])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the engine");
        let stdout = child.stdout.take().expect("a pipe");
        let mut served = Served { child, announcement: String::new() };
        BufReader::new(stdout).read_line(&mut served.announcement).expect("an announcement");
        served
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> TcpStream {
        let mut parts = self.announcement.split('"');
        let address = parts.find(|part| part.starts_with("127.")).expect("an address");
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }
}
