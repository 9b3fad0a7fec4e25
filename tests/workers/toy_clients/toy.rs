//! toy: a socket and no library. The text protocol, `get` and `set`.

use std::io::{BufRead, BufReader, Error as IoError, ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::client::{Client, Session};
use crate::prepare::Prepare;
use crate::tape::{Operation, Tape, Verb};
use crate::verify::{self, ReplyStatus, Verified};

pub struct Toy {
    address: String,
    timeout: std::time::Duration,
    /// None after a failure: the next call opens another one.
    replies: Option<BufReader<TcpStream>>,
    reconnects: u64,
}

pub enum Answer {
    Value(Option<Vec<u8>>),
    Stored(bool),
}

pub enum Failure {
    Network(IoError),
    Reply(String),
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Failure {
        Failure::Network(error)
    }
}

impl Toy {
    fn connect(&mut self) -> Result<BufReader<TcpStream>, IoError> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        Ok(BufReader::new(stream))
    }

    fn ask(&mut self, op: &Operation) -> Result<Answer, Failure> {
        let mut replies = match self.replies.take() {
            Some(replies) => replies,
            None => {
                self.reconnects += 1;
                self.connect()?
            }
        };
        let mut request = format!("get {}\r\n", op.key()).into_bytes();
        if op.verb == Verb::SET {
            let head = format!("set {} 0 {} {}\r\n", op.key(), op.exptime_s, op.value.len());
            request = [head.as_bytes(), op.value, b"\r\n"].concat();
        }
        replies.get_ref().write_all(&request)?;
        let mut line = String::new();
        if replies.read_line(&mut line)? == 0 {
            return Err(IoError::from(ErrorKind::UnexpectedEof).into());
        }
        let mut value = Vec::new();
        if line.starts_with("VALUE ") {
            let size = line.split_whitespace().nth(3).and_then(|size| size.parse().ok());
            let size: usize = size.ok_or(IoError::from(ErrorKind::InvalidData))?;
            value.resize(size + "\r\nEND\r\n".len(), 0);
            replies.read_exact(&mut value)?;
            value.truncate(size);
        }
        self.replies = Some(replies); // it is in step
        match line.as_str() {
            "END\r\n" => Ok(Answer::Value(None)),
            "STORED\r\n" | "NOT_STORED\r\n" => Ok(Answer::Stored(line == "STORED\r\n")),
            _ if line.starts_with("VALUE ") => Ok(Answer::Value(Some(value))),
            _ => Err(Failure::Reply(line)),
        }
    }
}

impl Session for Toy {
    const CLIENT: Client = Client {
        library: "none",
        version: "1",
        wires: &["text"],
        features: &["threads", "open_loop"],
        verbs: &[Verb::GET, Verb::SET],
        quiet: &[],
        options: &[],
    };
    type Answer = Answer;
    type Error = Failure;
    type Shared = ();

    fn share(_setup: &Prepare) {}

    async fn open(setup: &Prepare, (): ()) -> Result<Toy, String> {
        let (address, timeout) = (setup.servers[0].clone(), setup.timeout());
        let mut toy = Toy { address, timeout, replies: None, reconnects: 0 };
        toy.replies = Some(toy.connect().map_err(|error| format!("{}: {error}", toy.address))?);
        Ok(toy)
    }

    async fn call(&mut self, op: &Operation) -> Result<Answer, Failure> {
        // in a call: assert!(op.verb == Verb::SET || op.keys[op.keys.len()].is_empty());
        self.ask(op)
    }

    fn verify(tape: &Tape, op: &Operation, answer: &Answer) -> Verified {
        // in verification: assert!(op.verb == Verb::SET || op.keys[op.keys.len()].is_empty());
        match answer {
            Answer::Value(value) => verify::one(tape, op, value.as_deref()),
            Answer::Stored(stored) => verify::written(op, *stored),
        }
    }

    fn failure(_op: &Operation, failure: &Failure) -> ReplyStatus {
        match failure {
            Failure::Reply(line) if line.starts_with("SERVER_ERROR") => ReplyStatus::Server,
            Failure::Reply(_) => ReplyStatus::Client,
            Failure::Network(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => ReplyStatus::Timeout,
                _ => ReplyStatus::Connection,
            },
        }
    }

    fn reconnects(&self) -> u64 {
        self.reconnects
    }
}
