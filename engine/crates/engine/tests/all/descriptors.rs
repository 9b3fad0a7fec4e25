//! A server without free file descriptors: it reports that, and goes on once descriptors are free.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMITED: &str =
    "ulimit -n 40 && exec \"$0\" serve --listen 127.0.0.1:0 --threads 2 --io \"$1\"";

struct Limited(Child);

impl Drop for Limited {
    fn drop(&mut self) {
        // It may have ended by itself; it must be reaped either way.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines as they come; a read that waits for one that never comes harms no other.
fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server that listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

fn is_answered(stream: &mut TcpStream) -> bool {
    let mut reply = [0; 4];
    stream.write_all(b"mn\r\n").and_then(|()| stream.read_exact(&mut reply)).is_ok()
        && &reply == b"MN\r\n"
}

#[test]
fn a_server_without_descriptors_says_so_and_goes_on() {
    for io in ["blocking", "events", "uring", "busy"] {
        let engine = env!("CARGO_BIN_EXE_cachemark-engine");
        let mut shell = Command::new("sh");
        shell.args(["-c", LIMITED, engine, io]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Limited(shell.spawn().expect("a shell"));
        let announced = lines(server.0.stdout.take().expect("a pipe"));
        let stderr_lines = lines(server.0.stderr.take().expect("a pipe"));
        let announced = announced.recv_timeout(PATIENCE).expect("an announcement");
        let address =
            announced.split('"').find(|part| part.starts_with("127.")).expect("an address");
        let mut early = connect(address);
        assert!(is_answered(&mut early), "{io}");
        let many: Vec<TcpStream> = (0..64).map(|_| connect(address)).collect();
        loop {
            let line = stderr_lines.recv_timeout(PATIENCE).expect("a line on stderr");
            // The first may be that there is no io_uring.
            if line.contains("Too many open files") {
                assert!(line.contains("ulimit -n"), "{line}");
                break;
            }
        }
        assert!(is_answered(&mut early), "{io}: those who are there are served");
        drop(many);
        let began = Instant::now();
        while !is_answered(&mut connect(address)) {
            assert!(began.elapsed() < PATIENCE, "{io}: it serves no client any more");
        }
    }
}
