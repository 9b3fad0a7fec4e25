//! The null client: it writes prepared requests and reads replies into a scratch buffer.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use cachemark_load::{Address, Stream, cpu_times};
use cachemark_protocol::text::encode;
use cachemark_tape::{Tape, Verb};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::repeated_bytes::{Cursor, RepeatedBytes};

const READ_BYTES: usize = 64 * 1024;
const MAX_EVENTS: usize = 256;
/// The run fails if no reply arrives for this long.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests to write, and the size of their replies.
#[derive(Debug)]
pub struct RequestPlan {
    requests: Vec<u8>,
    request_bytes: usize,
    reply_bytes: usize,
}

impl RequestPlan {
    /// The gets of a tape. All requests must have one size, and all replies must have one size, because
    /// nothing is parsed. `reply_bytes` is the size of a reply if the server does not answer with the
    /// values of the tape.
    pub fn of(tape: &Tape, reply_bytes: Option<usize>) -> Result<RequestPlan, String> {
        let mut requests = Vec::new();
        let (mut request_bytes, mut expected) = (None, reply_bytes);
        for j in 0..tape.op_count() {
            let op = tape.op(j);
            if op.verb != Verb::Get {
                let kind = op.verb.kind(op.noreply);
                return Err(format!(
                    "the tape has a {kind}: the null client supports only gets, use --mix get=1"
                ));
            }
            let before = requests.len();
            encode::get_one(&mut requests, tape.key(op.key));
            let of_request = requests.len() - before;
            let of_reply = reply_bytes.unwrap_or_else(|| hit_bytes(tape, op.key));
            if *request_bytes.get_or_insert(of_request) != of_request
                || *expected.get_or_insert(of_reply) != of_reply
            {
                return Err("the null client needs keys of one length and values of one size: \
                            use one --key-length and one --size"
                    .to_owned());
            }
        }
        let (request_bytes, reply_bytes) = request_bytes.zip(expected).ok_or("an empty tape")?;
        Ok(RequestPlan { requests, request_bytes, reply_bytes: reply_bytes.max(1) })
    }

    fn messages(&self) -> usize {
        self.requests.len() / self.request_bytes
    }
}

/// The size of `VALUE key 0 length`, the data and `END`.
fn hit_bytes(tape: &Tape, key: u32) -> usize {
    let length = tape.value_length(key);
    let digits = length.to_string().len();
    b"VALUE  0 \r\n\r\nEND\r\n".len() + tape.key(key).len() + digits + length as usize
}

/// The result of a window.
#[derive(Clone, Copy, Debug)]
pub struct FloorResult {
    pub ops: u64,
    pub elapsed_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
}

struct Connection {
    stream: Stream,
    cursor: Cursor,
    /// Bytes of the incomplete reply.
    read: usize,
}

struct NullClient<'plan> {
    plan: &'plan RequestPlan,
    requests: RepeatedBytes,
    epoll: OwnedFd,
    connections: Vec<Connection>,
}

/// Play a plan in a closed loop on one thread: first the warm-up, which is not counted, then the
/// window.
pub fn play(
    address: &Address,
    plan: &RequestPlan,
    (connections, depth): (usize, usize),
    (warmup, duration): (Duration, Duration),
) -> io::Result<FloorResult> {
    let mut client = NullClient::connect(address, plan, connections)?;
    for c in 0..connections {
        client.add_owed(c, depth);
        client.write(c)?;
    }
    client.run(warmup)?;
    let (begin, before) = (Instant::now(), cpu_times());
    let ops = client.run(duration)?;
    let (elapsed_ns, after) = (begin.elapsed().as_nanos() as u64, cpu_times());
    Ok(FloorResult {
        ops,
        elapsed_ns,
        cpu_user_ns: after.0 - before.0,
        cpu_system_ns: after.1 - before.1,
    })
}

impl<'plan> NullClient<'plan> {
    fn connect(
        address: &Address,
        plan: &'plan RequestPlan,
        count: usize,
    ) -> io::Result<NullClient<'plan>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for c in 0..count {
            let stream = Stream::connect(address, REPLY_TIMEOUT)?;
            epoll::add(&epoll, &stream, EventData::new_u64(c as u64), EventFlags::IN)?;
            // Each connection starts at another place of the tape.
            let first = c * plan.messages() / count;
            connections.push(Connection {
                stream,
                cursor: Cursor::at(first, plan.request_bytes),
                read: 0,
            });
        }
        Ok(NullClient { plan, requests: RepeatedBytes::of(&plan.requests), epoll, connections })
    }

    fn add_owed(&mut self, c: usize, requests: usize) {
        self.connections[c].cursor.add_owed(requests * self.plan.request_bytes);
    }

    fn write(&mut self, c: usize) -> io::Result<()> {
        let connection = &mut self.connections[c];
        if self.requests.write(&mut connection.cursor, &mut connection.stream)? {
            return Ok(());
        }
        Err(io::Error::other("the socket's buffer is full: use a smaller --depth"))
    }

    /// Play for a time. Returns the number of replies.
    fn run(&mut self, duration: Duration) -> io::Result<u64> {
        let mut scratch = vec![0; READ_BYTES];
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        let timeout = Timespec { tv_sec: REPLY_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let (begin, mut replies) = (Instant::now(), 0);
        while begin.elapsed() < duration {
            let (events, _) = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
                Ok(waited) => waited,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if events.is_empty() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not reply"));
            }
            for event in events {
                replies += self.answer_readable(event.data.u64() as usize, &mut scratch)?;
            }
        }
        Ok(replies)
    }

    /// Read what has arrived, and send one request per reply.
    #[inline]
    fn answer_readable(&mut self, c: usize, scratch: &mut [u8]) -> io::Result<u64> {
        let connection = &mut self.connections[c];
        match connection.stream.read(scratch)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => {
                connection.read += bytes;
                let whole = connection.read / self.plan.reply_bytes;
                connection.read %= self.plan.reply_bytes;
                self.add_owed(c, whole);
                self.write(c)?;
                Ok(whole as u64)
            }
        }
    }
}
