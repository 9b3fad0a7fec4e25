//! A capture as a source of a trace.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::str::FromStr;
use std::time::Duration;

use cachemark_trace::Requests;
use cachemark_trace::file::{Record, Summary};

use crate::book::{AGAIN, Book, WINDOW_NS, reason};
use crate::capture_file::{CaptureFile, Packet};
use crate::connection::Connection;
use crate::datagrams::{Datagrams, Ends};
use crate::frame::{NoSegment, Segment, Transport, segment};
use crate::order::Header;
use crate::stream::Piece;

/// How often missing segments are looked for, on the clock of the capture.
const SWEEP_NS: u64 = 250_000_000;
/// A connection without segments is forgotten, if there are many.
const IDLE_NS: u64 = 60_000_000_000;
const MOST_CONNECTIONS: usize = 1 << 18;
/// The most memory of a packet besides its bytes.
const PACKET_BYTES: usize = 128;
/// So that sums of times do not overflow, however often the clock jumps.
const MOST_CLOCK_NS: u64 = u64::MAX / 2;

/// The ports of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<u16>);

impl Default for Ports {
    fn default() -> Ports {
        Ports(vec![11211])
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let ports: Result<Vec<u16>, _> = text.split(',').map(|port| port.trim().parse()).collect();
        match ports {
            Ok(ports) if !ports.contains(&0) => Ok(Ports(ports)),
            _ => Err(format!("{text:?} are no ports: write 11211 or 11211,11212")),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self.0.iter().map(u16::to_string).collect();
        formatter.write_str(&ports.join(" or "))
    }
}

impl Ports {
    fn has_one_of(&self, segment: &Segment<'_>) -> bool {
        self.0.contains(&segment.from.port()) || self.0.contains(&segment.to.port())
    }
}

/// When reading ends before the capture does. Times come from packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub duration: Option<Duration>,
    pub requests: Option<u64>,
}

/// Connections' memory is added up after some bytes of packets, and given up if it is too much. Between two sums it
/// grows by a small multiple of these bytes.
struct Memory {
    sum_after_bytes: usize,
    most_held_bytes: usize,
}

const MEMORY: Memory = Memory { sum_after_bytes: 1 << 23, most_held_bytes: 1 << 28 };

/// The requests in captured packets.
pub struct Capture<R> {
    file: CaptureFile<R>,
    ports: Ports,
    limits: Limits,
    connections: HashMap<Ends, Connection>,
    datagrams: Datagrams,
    book: Book,
    clients: u32,
    given: u64,
    first_ns: Option<u64>,
    now_ns: u64,
    /// How far the clock went back.
    back_ns: u64,
    swept_ns: u64,
    bytes_since_sum: usize,
    memory: Memory,
    unknown_link: Option<u16>,
    is_any_known: bool,
    is_any_ours: bool,
    ended: bool,
}

impl<R: Read> Capture<R> {
    /// Begin to read a pcap or pcapng file. An error says that it is none.
    pub fn open(from: R, ports: Ports, limits: Limits) -> Result<Capture<R>, String> {
        Ok(Capture {
            file: CaptureFile::open(from)?,
            ports,
            limits,
            connections: HashMap::new(),
            datagrams: Datagrams::default(),
            book: Book::default(),
            clients: 0,
            given: 0,
            first_ns: None,
            now_ns: 0,
            back_ns: 0,
            swept_ns: 0,
            bytes_since_sum: 0,
            memory: MEMORY,
            unknown_link: None,
            is_any_known: false,
            is_any_ours: false,
            ended: false,
        })
    }

    /// Read a packet, or reach the end.
    fn step(&mut self) -> Result<(), String> {
        let Some(packet) = self.file.next()? else { return self.end() };
        let Packet { at_ns, bytes, length, .. } = packet;
        let found = segment(&packet);
        let clock =
            Clock { now_ns: &mut self.now_ns, back_ns: &mut self.back_ns, book: &mut self.book };
        let at_ns = clock.time(at_ns);
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        let duration = self.limits.duration.map(|most| most.as_nanos());
        if duration.is_some_and(|most| u128::from(self.now_ns - first_ns.min(self.now_ns)) >= most)
        {
            return self.end();
        }
        self.bytes_since_sum += bytes.len() + PACKET_BYTES;
        self.is_any_known |= !matches!(found, Err(NoSegment::UnknownLink(_)));
        match found {
            Ok(segment) if !self.ports.has_one_of(&segment) => self.book.count(OTHERS, 1),
            Ok(segment) => {
                self.is_any_ours = true;
                let Segment { from, to, transport, bytes, length } = segment;
                let piece = Piece { at_ns, bytes, length, is_missing: false };
                let router = Router {
                    ports: &self.ports,
                    connections: &mut self.connections,
                    datagrams: &mut self.datagrams,
                    clients: &mut self.clients,
                    book: &mut self.book,
                };
                router.pass((from, to), transport, piece);
            }
            Err(NoSegment::UnknownLink(link)) => {
                self.unknown_link = Some(link);
                self.book.leave_out(reason::UNKNOWN_LINK);
            }
            Err(NoSegment::OtherProtocol) => self.book.count(OTHERS, 1),
            Err(NoSegment::Fragment) => self.book.leave_out(reason::FRAGMENTS),
            Err(NoSegment::CutHeaders) => self.book.leave_out(reason::CUT_HEADERS),
        }
        self.book.count("packets that the capture cut", u64::from(bytes.len() < length));
        if self.swept_ns + SWEEP_NS <= self.now_ns {
            self.sweep();
        }
        if self.bytes_since_sum >= self.memory.sum_after_bytes {
            self.bytes_since_sum = 0;
            self.bound_memory();
        }
        Ok(())
    }

    /// Give up what is held, if it is too much: a capture can be made to need it all.
    fn bound_memory(&mut self) {
        let held: usize = self.connections.values().map(Connection::held_bytes).sum();
        if held + self.datagrams.held_bytes() > self.memory.most_held_bytes {
            self.datagrams.give_up();
            for connection in self.connections.values_mut() {
                connection.give_up(reason::MEMORY, &mut self.book);
            }
        }
    }

    /// Give up what is missing for long, and forget connections that are over.
    fn sweep(&mut self) {
        let now_ns = self.now_ns;
        self.swept_ns = now_ns;
        self.book.go_to(now_ns);
        self.datagrams.forget(now_ns);
        let most_idle_ns =
            if self.connections.len() > MOST_CONNECTIONS / 2 { IDLE_NS } else { u64::MAX };
        let book = &mut self.book;
        self.connections.retain(|_, connection| {
            connection.skip_gaps(Some(now_ns), book);
            let idle_ns = now_ns - connection.last_ns.min(now_ns);
            let is_over = idle_ns > if connection.is_closed { WINDOW_NS } else { most_idle_ns };
            if is_over {
                close(connection, book);
            }
            !is_over
        });
    }

    fn end(&mut self) -> Result<(), String> {
        self.ended = true;
        let mut connections: Vec<_> = std::mem::take(&mut self.connections).into_iter().collect();
        connections.sort_by_key(|(ends, _)| *ends);
        for (_, mut connection) in connections {
            close(&mut connection, &mut self.book);
        }
        match (self.unknown_link, self.is_any_known) {
            (Some(link), false) => Err(format!(
                "packet 1: links of type {link} are not read, but Ethernet, cooked, raw IP and loopback: \
                 capture with `tcpdump -i any`"
            )),
            (_, true) if !self.is_any_ours => Err(format!(
                "it has {} packets, and none to or from port {}: name the servers' ports with --port",
                self.file.packets(),
                self.ports
            )),
            _ => Ok(()),
        }
    }
}

const OTHERS: &str = "packets of other ports or protocols";

fn close(connection: &mut Connection, book: &mut Book) {
    connection.end(book);
    book.count(AGAIN, connection.retransmitted());
}

impl<R: Read> Requests for Capture<R> {
    fn next(&mut self) -> Result<Option<Record<'_>>, String> {
        let has_enough = self.limits.requests.is_some_and(|most| self.given >= most);
        while !has_enough && !self.book.is_ready(self.ended) {
            if self.ended {
                return Ok(None);
            }
            self.step()?;
        }
        if has_enough {
            return Ok(None);
        }
        self.given += 1;
        Ok(self.book.take())
    }

    fn ending(&mut self) -> (u64, Summary) {
        let named = |counts: &std::collections::BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        self.book.count("packets", self.file.packets());
        self.book.count("packets that the capture dropped", self.file.dropped());
        self.book.count("a packet that the file's end cut off", u64::from(self.file.is_cut_off()));
        self.book.count("connections", self.clients.into());
        self.book.count("outcomes that are unknown", self.book.unknown_outcomes);
        let summary = Summary {
            left_out: named(&self.book.left_out),
            other_lines: named(&self.book.others),
            ..Summary::default()
        };
        (self.file.packets(), summary)
    }
}

/// The clock of the capture, which may go back a little, as packets of several queues do. If it goes back further,
/// it was set: then times go on from where they were.
struct Clock<'a> {
    now_ns: &'a mut u64,
    back_ns: &'a mut u64,
    book: &'a mut Book,
}

impl Clock<'_> {
    fn time(self, read_ns: u64) -> u64 {
        let mut at_ns = read_ns.saturating_add(*self.back_ns).min(MOST_CLOCK_NS);
        if at_ns + WINDOW_NS <= *self.now_ns {
            *self.back_ns = self.now_ns.saturating_sub(read_ns);
            at_ns = *self.now_ns;
            self.book.count("times that the clock went back", 1);
        }
        *self.now_ns = at_ns.max(*self.now_ns);
        at_ns
    }
}

/// Where segments go.
struct Router<'a> {
    ports: &'a Ports,
    connections: &'a mut HashMap<Ends, Connection>,
    datagrams: &'a mut Datagrams,
    clients: &'a mut u32,
    book: &'a mut Book,
}

impl Router<'_> {
    fn pass(mut self, (from, to): Ends, transport: Transport, piece: Piece<'_>) {
        let is_server = |port: u16| self.ports.0.contains(&port);
        let from_client = match (is_server(from.port()), is_server(to.port())) {
            (true, true) => !self.connections.contains_key(&(to, from)),
            (_, from_client) => from_client,
        };
        let ends = if from_client { (from, to) } else { (to, from) };
        match transport {
            Transport::Udp if from_client => {
                self.datagrams.ask(ends, &piece, self.clients, self.book);
            }
            Transport::Udp => self.datagrams.answer(ends, &piece, self.book),
            Transport::Tcp { sequence, acknowledged, begins, ends: closes } => {
                let header = Header { sequence, acknowledged, begins, ends: closes };
                self.tcp(ends, from_client, &header, piece);
            }
        }
    }

    fn tcp(&mut self, ends: Ends, from_client: bool, header: &Header, piece: Piece<'_>) {
        let is_other = self.connections.get(&ends).is_some_and(|connection| {
            from_client && header.begins && !connection.is_begun_by(header)
                || connection.is_of_another(header, from_client)
        });
        if is_other && let Some(mut before) = self.connections.remove(&ends) {
            close(&mut before, self.book);
        }
        if !self.connections.contains_key(&ends) {
            if piece.length == 0 && !header.begins {
                return;
            }
            if self.connections.len() == MOST_CONNECTIONS {
                return self.book.leave_out(reason::TOO_MANY);
            }
            let connection = Connection::new(*self.clients, header, from_client);
            *self.clients += 1;
            self.connections.insert(ends, connection);
        }
        if let Some(connection) = self.connections.get_mut(&ends) {
            connection.add(header, from_client, piece, self.book);
        }
    }
}

#[cfg(test)]
mod tests {
    use cachemark_properties::packets::{File, Link, Sent, capture};

    use super::*;

    #[test]
    fn a_capture_that_needs_much_memory_is_read_with_less() {
        let file = File::Pcap { big_endian: false, ns: false };
        let begun = b"get unfinished";
        let first = Sent::tcp(0, true, 0, 0, b"get a\r\n");
        let mut sent = vec![first, Sent::tcp(0, true, 7, 0, begun)];
        // Behind a gap, at a time that stands still: the clock gives nothing up.
        sent.extend((1..50).map(|at| Sent::tcp(0, true, 100_000 * at, 0, &[b'x'; 60_000])));
        let bytes = capture(file, Link::Ethernet, false, 70_000, &sent);
        let read = |memory| {
            let (ports, limits) = (Ports::default(), Limits::default());
            let mut capture = Capture::open(&*bytes, ports, limits).expect("a capture");
            capture.memory = memory;
            let mut records = 0;
            while capture.next().expect("a capture").is_some() {
                records += 1;
            }
            (records, capture.ending().1.left_out)
        };
        let (records, left_out) = read(MEMORY);
        assert_eq!((records, left_out.get(reason::MEMORY)), (1, None));
        let (records, left_out) = read(Memory { sum_after_bytes: 1 << 20, most_held_bytes: 1000 });
        assert_eq!((records, left_out.get(reason::MEMORY)), (1, Some(&1)), "{left_out:?}");
    }
}
