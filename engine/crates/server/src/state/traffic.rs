//! The server's view of each connection, to count the sends of a client: reads, pieces, segments.
//!
//! Only blocking connections of a state with a `TrafficLog` are observed. All others are served by code that is
//! compiled without it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The kernel's counts for a TCP connection (`tcp_info`), from the server's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Segments with data that came, and that were sent.
    pub data_in: u32,
    pub data_out: u32,
    /// All segments, with pure acknowledgements.
    pub all_in: u32,
    pub all_out: u32,
    pub retransmitted: u32,
    pub round_trip_us: u32,
}

/// A connection that has ended.
///
/// A turn is what arrives before the server answers: one request, or several that were sent together.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionTraffic {
    pub turns: u64,
    /// Reads that brought bytes: the pieces of all turns.
    pub reads: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// The time between the first and the last piece of a turn: of all turns, and the longest.
    pub gaps_ns: u64,
    pub longest_gap_ns: u64,
    /// `None` for a Unix socket.
    pub segments: Option<Segments>,
}

#[derive(Debug, Default)]
struct Entries {
    open: usize,
    ended: Vec<ConnectionTraffic>,
}

/// The connections of a server.
#[derive(Debug, Default)]
pub struct TrafficLog {
    entries: Mutex<Entries>,
    changed: Condvar,
}

impl TrafficLog {
    /// All connections, once they have ended; those that do not end within `patience` are left out.
    pub fn take(&self, patience: Duration) -> Vec<ConnectionTraffic> {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |at| at.open > 0);
        let (mut entries, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut entries.ended)
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the bytes that a connection receives and that the server sends to it.
pub trait Observer {
    fn received(&mut self, bytes: usize);
    fn answered(&mut self, bytes: usize);
}

/// Observes nothing, and costs nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn received(&mut self, _: usize) {}
    fn answered(&mut self, _: usize) {}
}

/// Observes one connection. When it is dropped, the connection is in the log.
pub struct Observed {
    log: Arc<TrafficLog>,
    /// Its file descriptor, which outlives this.
    socket: i32,
    traffic: ConnectionTraffic,
    /// When the present turn began, until it is answered, and when its last piece came.
    turn: Option<(Instant, Instant)>,
}

impl Observed {
    pub fn new(log: Arc<TrafficLog>, socket: i32) -> Observed {
        log.lock().open += 1;
        Observed { log, socket, traffic: ConnectionTraffic::default(), turn: None }
    }
}

impl Observer for Observed {
    fn received(&mut self, bytes: usize) {
        let now = Instant::now();
        self.traffic.reads += 1;
        self.traffic.bytes_in += bytes as u64;
        self.turn = Some((self.turn.map_or(now, |(began, _)| began), now));
    }

    fn answered(&mut self, bytes: usize) {
        self.traffic.bytes_out += bytes as u64;
        let Some((began, last)) = self.turn.take() else { return };
        let gap_ns = last.duration_since(began).as_nanos() as u64;
        self.traffic.turns += 1;
        self.traffic.gaps_ns += gap_ns;
        self.traffic.longest_gap_ns = self.traffic.longest_gap_ns.max(gap_ns);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.traffic.segments = segments(self.socket);
        let mut entries = self.log.lock();
        entries.open -= 1;
        entries.ended.push(self.traffic);
        drop(entries);
        self.log.changed.notify_all();
    }
}

/// The part of the kernel's `struct tcp_info` that is read here. The C library's own struct ends before it.
const TCP_INFO_BYTES: usize = 160;
const ROUND_TRIP_AT: usize = 68;
const RETRANSMITTED_AT: usize = 100;
const ALL_OUT_AT: usize = 136;
const ALL_IN_AT: usize = 140;
const DATA_IN_AT: usize = 152;
const DATA_OUT_AT: usize = 156;

fn segments(socket: i32) -> Option<Segments> {
    let mut info = [0_u8; TCP_INFO_BYTES];
    let mut length = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let status = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if status != 0 || (length as usize) < TCP_INFO_BYTES {
        return None;
    }
    let number = |at: usize| {
        let bytes = info[at..].first_chunk::<4>().copied();
        bytes.map_or(0, u32::from_ne_bytes)
    };
    Some(Segments {
        data_in: number(DATA_IN_AT),
        data_out: number(DATA_OUT_AT),
        all_in: number(ALL_IN_AT),
        all_out: number(ALL_OUT_AT),
        retransmitted: number(RETRANSMITTED_AT),
        round_trip_us: number(ROUND_TRIP_AT),
    })
}
