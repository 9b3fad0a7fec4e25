//! One caller: it asks for the key again and again, and refills it when that is its turn.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cachemark_load::Address;
use cachemark_protocol::meta::client::{Answer, parse};

use crate::stampede::episodes::{Call, Episodes};
use crate::stampede::played::Approach;

const KEY: &str = "cachemark-stampede";
/// How long a caller waits before it asks again for a value that another one is making.
const POLL: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 64 * 1024;

/// The work of every caller.
#[derive(Clone)]
pub struct Plan {
    pub approach: Approach,
    pub pause: Duration,
    pub making: Duration,
    pub ttl_s: u64,
    pub value: Vec<u8>,
}

impl Plan {
    /// How long others wait for a winner, in seconds: longer than it takes, in a clock of whole seconds.
    fn lease_s(&self) -> u64 {
        self.making.as_secs() + 2
    }

    /// The item is refilled this time before its expiry: half of the time to live.
    fn recache_s(&self) -> u64 {
        self.ttl_s.div_ceil(2) + 1
    }

    fn read(&self) -> String {
        let lease_s = self.lease_s();
        match self.approach {
            Approach::Plain => format!("mg {KEY} v\r\n"),
            Approach::Win => format!("mg {KEY} v N{lease_s}\r\n"),
            Approach::Stale => format!("mg {KEY} v N{lease_s} R{}\r\n", self.recache_s()),
        }
    }
}

trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

pub struct Caller {
    plan: Plan,
    read: String,
    connection: Box<dyn Connection>,
    input: Vec<u8>,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Value,
    /// The old value, which another caller refills.
    Old,
    /// This caller shall refill.
    Mine,
    /// No value, and another caller refills.
    Nothing,
}

impl Caller {
    pub fn connect(place: &Address, plan: Plan) -> io::Result<Caller> {
        let read = plan.read();
        Ok(Caller { plan, read, connection: open(place)?, input: Vec::new() })
    }

    /// Store the value.
    pub fn store(&mut self) -> io::Result<()> {
        let Plan { value, ttl_s, .. } = &self.plan;
        let mut request = format!("ms {KEY} {} T{ttl_s}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        self.ask(&request, |answer, _| match answer {
            Answer::Done => Ok(()),
            other => Err(unexpected(other)),
        })
    }

    /// Call until enough expiries were seen.
    pub fn play(&mut self, episodes: &Episodes) -> io::Result<()> {
        while !episodes.is_over() {
            let (began, begin) = (Instant::now(), episodes.begin());
            let call = self.call(episodes)?;
            episodes.add(call, began.elapsed(), begin);
            sleep(self.plan.pause);
        }
        Ok(())
    }

    /// One call: it ends when the caller has a value.
    fn call(&mut self, episodes: &Episodes) -> io::Result<Call> {
        let mut call = Call::Hit;
        loop {
            match self.get()? {
                Found::Value => return Ok(call),
                Found::Old => return Ok(Call::Stale),
                Found::Mine => {
                    self.refill(episodes)?;
                    return Ok(Call::Refilled);
                }
                Found::Nothing => {
                    call = Call::Waited;
                    sleep(POLL);
                    if episodes.is_over() {
                        return Ok(call);
                    }
                }
            }
        }
    }

    fn refill(&mut self, episodes: &Episodes) -> io::Result<()> {
        episodes.begin_refill();
        sleep(self.plan.making);
        self.store()?;
        episodes.end_refill();
        Ok(())
    }

    fn get(&mut self) -> io::Result<Found> {
        let (request, length) = (std::mem::take(&mut self.read), self.plan.value.len());
        let found = self.ask(request.as_bytes(), |answer, marks| match answer {
            Answer::NotFound => Ok(Found::Mine),
            Answer::Value(_) if marks.won => Ok(Found::Mine),
            Answer::Value([]) if marks.taken => Ok(Found::Nothing),
            Answer::Value(value) if value.len() != length || value[0] != b'v' => {
                Err(io::Error::new(ErrorKind::InvalidData, "a value that no caller stored"))
            }
            Answer::Value(_) if marks.taken || marks.stale => Ok(Found::Old),
            Answer::Value(_) => Ok(Found::Value),
            other => Err(unexpected(other)),
        });
        self.read = request;
        found
    }

    /// Send a request, and read its reply.
    fn ask<T>(
        &mut self,
        request: &[u8],
        take: impl Fn(Answer<'_>, Marks) -> io::Result<T>,
    ) -> io::Result<T> {
        self.connection.write_all(request)?;
        self.input.clear();
        loop {
            if let Some((reply, bytes)) = parse(&self.input).map_err(|_| no_reply())? {
                if bytes < self.input.len() {
                    return Err(no_reply());
                }
                return take(reply.answer, Marks::of(&self.input));
            }
            let had = self.input.len();
            self.input.resize(had + READ_BYTES, 0);
            let read = match self.connection.read(&mut self.input[had..]) {
                // A stopped process goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.input.truncate(had);
                    continue;
                }
                read => read?,
            };
            self.input.truncate(had + read);
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The flags of a reply: this caller shall refill (`W`), another one shall (`Z`), the value is stale (`X`).
#[derive(Clone, Copy)]
struct Marks {
    won: bool,
    taken: bool,
    stale: bool,
}

impl Marks {
    fn of(reply: &[u8]) -> Marks {
        let line = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let has = |flag: &[u8]| line.split(|byte| *byte == b' ').any(|word| word == flag);
        Marks { won: has(b"W"), taken: has(b"Z"), stale: has(b"X") }
    }
}

fn no_reply() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the server sent no reply of memcached's")
}

fn unexpected(answer: Answer<'_>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server answered {answer:?}"))
}

fn open(place: &Address) -> io::Result<Box<dyn Connection>> {
    match place {
        Address::Tcp(host) => {
            let stream = TcpStream::connect(&host.resolve()?[..])?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Ok(Box::new(stream))
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Ok(Box::new(stream))
        }
        Address::Udp(_) => Err(ErrorKind::Unsupported.into()),
    }
}
