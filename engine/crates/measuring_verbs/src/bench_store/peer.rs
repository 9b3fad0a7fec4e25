//! A memcached process for comparison, and a text protocol connection to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(10);

/// A memcached process, pinned to a CPU if one is given. Dropping this value ends it.
pub struct Peer {
    process: Child,
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    value: Vec<u8>,
}

impl Peer {
    pub fn start(program: &Path, megabytes: u64, cpu: Option<usize>) -> Result<Peer, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|error| format!("no free port: {error}"))?;
        let mut command = match cpu {
            None => Command::new(program),
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string()]).arg(program);
                command
            }
        };
        let port = address.port().to_string();
        command.args(["-u", "nobody", "-l", "127.0.0.1", "-p", &port, "-U", "0", "-t", "1"]);
        command.args(["-m", &megabytes.to_string()]).stdin(Stdio::null());
        let name = program.display();
        let mut process = command.spawn().map_err(|error| {
            format!("{name}: {error}; install memcached, or name it with --memcached")
        })?;
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(_) if began.elapsed() < READY_WITHIN => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => {
                    let _ = process.kill();
                    let _ = process.wait();
                    return Err(format!("{name} does not listen: {error}"));
                }
            }
        };
        let fail = |error: std::io::Error| format!("{name}: {error}");
        stream.set_nodelay(true).map_err(fail)?;
        stream.set_read_timeout(Some(READY_WITHIN)).map_err(fail)?;
        let stream = BufReader::with_capacity(1 << 18, stream);
        Ok(Peer { process, stream, line: Vec::new(), value: Vec::new() })
    }

    /// Send requests unchanged.
    pub fn send(&mut self, requests: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(requests).map_err(|error| format!("memcached: {error}"))
    }

    fn read_line(&mut self) -> Result<(), String> {
        self.line.clear();
        let bytes = self.stream.read_until(b'\n', &mut self.line);
        match bytes.map_err(|error| format!("memcached: {error}"))? {
            0 => Err("memcached closed the connection".to_owned()),
            _ => Ok(()),
        }
    }

    /// Read the reply to a get of one key: the length of its value, or `None`.
    pub fn take_get(&mut self) -> Result<Option<usize>, String> {
        self.read_line()?;
        if self.line == b"END\r\n" {
            return Ok(None);
        }
        let words: Vec<&[u8]> = self.line.trim_ascii_end().split(|byte| *byte == b' ').collect();
        let length = match words[..] {
            [b"VALUE", _, _, length] => {
                std::str::from_utf8(length).ok().and_then(|n| n.parse().ok())
            }
            _ => None,
        };
        let reply = String::from_utf8_lossy(&self.line).into_owned();
        let length: usize = length.ok_or_else(|| format!("memcached: {reply:?}"))?;
        self.value.resize(length + 2, 0);
        let read = self.stream.read_exact(&mut self.value);
        read.map_err(|error| format!("memcached: {error}"))?;
        self.read_line()?;
        Ok(Some(length))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
