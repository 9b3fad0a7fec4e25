//! A client's connection, and the one to the server that belongs to it.

pub mod end;
mod outgoing;
mod replies;

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;

use crate::edits::{self, Chooser, ReplyMemory, Then};
use crate::fault::Fault;
use crate::frames::framer::Framer;
use crate::frames::replies::Replies;
use crate::frames::requests::{RequestKind, Requests};
use crate::log::{ClosedBy, Event, Log};
use end::End;
use outgoing::Outgoing;

/// How many bytes wait for a peer that does not read, before no more are read for it.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How many requests for the version may be outstanding. A peer that answers never lets this number come together.
const VERSIONS_MAX: usize = 1 << 20;
/// How often a connection reads before the others get their turn.
const READS_PER_TURN: usize = 16;

/// The state that all connections share.
pub struct Shared {
    pub fault: Option<Fault>,
    /// Counts the faults that began.
    pub fault_number: u64,
    pub chooser: Chooser,
    pub log: Log,
    pub now_ns: u64,
    /// Replies may wait for their time on some connection.
    pub has_delayed: bool,
    /// The last bytes that were read.
    pub scratch: Vec<u8>,
}

impl Shared {
    /// Whether connections may have something to do although nothing comes.
    pub fn is_timed(&self) -> bool {
        self.has_delayed || matches!(self.fault, Some(Fault::Drip { .. } | Fault::IdleClose { .. }))
    }
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    /// There is more to do at once.
    Busy,
    /// Drop the connection.
    Closed(ClosedBy),
}

pub struct Connection {
    pub number: u64,
    pub client: End,
    /// `None` once the connection only waits for its client to close.
    pub upstream: Option<End>,
    is_connecting: bool,
    requests: Framer<Requests>,
    replies: Framer<Replies>,
    to_upstream: Outgoing,
    to_client: Outgoing,
    memory: ReplyMemory,
    /// The outstanding requests for the version: the client's, and ours with the reply that takes their place.
    versions: VecDeque<Option<Vec<u8>>>,
    /// How the connection ends when everything is written.
    then: Then,
    /// A reply was lost: none will ever come.
    is_silent: bool,
    /// The work of the current fault here.
    fault: FaultState,
    active_ns: u64,
    /// The first of both that sent its end.
    ended_by: Option<ClosedBy>,
}

/// The memory of a fault about a connection while it is in force.
#[derive(Default)]
struct FaultState {
    number: u64,
    /// How many bytes of replies still pass before the black hole.
    left_bytes: u64,
    /// When the next byte drips.
    next_byte_ns: u64,
    is_logged: bool,
}

impl Connection {
    /// A client's connection; without a server it gets `farewell` and is closed.
    pub fn new(
        number: u64,
        client: TcpStream,
        upstream: Option<TcpStream>,
        farewell: &[u8],
        now_ns: u64,
    ) -> Connection {
        let mut to_client = Outgoing::default();
        to_client.add(farewell, now_ns, now_ns);
        Connection {
            number,
            client: End::new(client),
            then: if upstream.is_some() { Then::GoOn } else { Then::Close },
            upstream: upstream.map(End::new),
            is_connecting: true,
            requests: Framer::default(),
            replies: Framer::default(),
            to_upstream: Outgoing::default(),
            to_client,
            memory: ReplyMemory::default(),
            versions: VecDeque::new(),
            is_silent: false,
            fault: FaultState::default(),
            active_ns: now_ns,
            ended_by: None,
        }
    }

    /// Reset both connections when they are dropped.
    pub fn reset_at_close(&self) {
        self.client.reset_at_close();
        if let Some(upstream) = &self.upstream {
            upstream.reset_at_close();
        }
    }

    pub fn log_end(&self, by: ClosedBy, log: &mut Log) {
        log.add(Event::Closed {
            connection: self.number,
            by,
            request_bytes: self.to_upstream.added(),
            reply_bytes: self.to_client.written(),
        });
    }

    /// Move what can be moved.
    pub fn pump(&mut self, shared: &mut Shared) -> Status {
        self.meet_fault(shared);
        if self.is_dark(shared) {
            return Status::Open;
        }
        if self.idles_too_long(shared) {
            self.end(Then::Close);
        }
        match self.connected() {
            Ok(()) => {}
            Err(_) => return self.broken(ClosedBy::Upstream),
        }
        let requests = match self.pump_requests(shared) {
            Ok(busy) => busy,
            Err(by) => return self.broken(by),
        };
        let replies = match self.pump_replies(shared) {
            Ok(busy) => busy,
            Err(by) => return self.broken(by),
        };
        self.status(requests || replies)
    }

    fn broken(&self, by: ClosedBy) -> Status {
        self.reset_at_close();
        Status::Closed(by)
    }

    fn status(&mut self, busy: bool) -> Status {
        let all_written = self.to_client.left() == 0;
        let upstream_done = self.upstream.as_ref().is_none_or(|upstream| upstream.has_ended);
        if self.client.has_ended || upstream_done {
            let by = if upstream_done { ClosedBy::Upstream } else { ClosedBy::Client };
            self.ended_by.get_or_insert(by);
        }
        match self.then {
            Then::Reset if all_written => return self.broken(ClosedBy::Fault),
            Then::Close if all_written => self.client.finish(),
            Then::GoOn if upstream_done && all_written => self.client.finish(),
            _ => {}
        }
        match self.then {
            Then::Close if self.client.has_ended => Status::Closed(ClosedBy::Fault),
            Then::GoOn if self.client.has_ended && upstream_done && all_written => {
                Status::Closed(self.ended_by.unwrap_or(ClosedBy::Client))
            }
            _ if busy => Status::Busy,
            _ => Status::Open,
        }
    }

    /// Close or reset the connection when everything is written. The server's connection ends at once.
    fn end(&mut self, then: Then) {
        if self.then == Then::GoOn && then != Then::GoOn {
            self.then = then;
            self.upstream = None;
        }
    }

    /// A fault may have begun since the last time.
    fn meet_fault(&mut self, shared: &Shared) {
        if self.fault.number == shared.fault_number {
            return;
        }
        self.fault = FaultState { number: shared.fault_number, ..FaultState::default() };
        if let Some(Fault::Blackhole { after_bytes }) = shared.fault {
            self.fault.left_bytes = after_bytes;
        }
    }

    fn is_dark(&mut self, shared: &mut Shared) -> bool {
        let is_dark =
            matches!(shared.fault, Some(Fault::Blackhole { .. })) && self.fault.left_bytes == 0;
        if is_dark {
            self.log_injection(self.to_client.written(), shared);
        }
        is_dark
    }

    /// Log what a fault does to a connection as a whole, once.
    fn log_injection(&mut self, reply_offset: u64, shared: &mut Shared) {
        if !std::mem::replace(&mut self.fault.is_logged, true) {
            shared.log.add(Event::Injected { connection: self.number, reply_offset });
        }
    }

    fn idles_too_long(&self, shared: &Shared) -> bool {
        self.idle_end_ns(shared).is_some_and(|end_ns| end_ns <= shared.now_ns)
    }

    fn idle_end_ns(&self, shared: &Shared) -> Option<u64> {
        match shared.fault {
            Some(Fault::IdleClose { idle_ms }) if self.then == Then::GoOn => {
                Some(self.active_ns + idle_ms * 1_000_000)
            }
            _ => None,
        }
    }

    /// When there is something to do here although nothing comes.
    pub fn next_due_ns(&self, shared: &Shared) -> Option<u64> {
        let drip_ns = matches!(shared.fault, Some(Fault::Drip { .. }))
            .then_some(self.fault.next_byte_ns)
            .filter(|_| self.to_client.has_due() && self.client.is_writable);
        let times = [self.to_client.next_due_ns(), drip_ns, self.idle_end_ns(shared)];
        times.into_iter().flatten().min()
    }

    /// See whether the server has accepted the connection.
    fn connected(&mut self) -> io::Result<()> {
        let Some(upstream) = self.upstream.as_ref().filter(|upstream| upstream.is_writable) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.is_connecting, false)
            && let Some(error) = upstream.socket().take_error()?
        {
            return Err(error);
        }
        Ok(())
    }

    /// Pass requests on. Returns whether more can be read.
    fn pump_requests(&mut self, shared: &mut Shared) -> Result<bool, ClosedBy> {
        let now_ns = shared.now_ns;
        let Some(upstream) = &mut self.upstream else { return self.discard_requests(shared) };
        if self.is_connecting {
            return Ok(false);
        }
        let edits = shared.fault.as_ref().is_some_and(Fault::edits_requests);
        if !edits {
            let (versions, mut out) = (&mut self.versions, Vec::new());
            self.requests.release(&mut out, |kind| note(kind, versions));
            self.to_upstream.add(&out, now_ns, now_ns);
        }
        let mut busy = true;
        for _ in 0..READS_PER_TURN {
            self.to_upstream
                .write_to(upstream, usize::MAX, now_ns)
                .map_err(|_| ClosedBy::Upstream)?;
            if self.to_upstream.held() >= WAITING_BYTES_MAX {
                busy = false;
                break;
            }
            let read = self.client.read(&mut shared.scratch).map_err(|_| ClosedBy::Client)?;
            let Some(bytes) = read else {
                busy = false;
                break;
            };
            self.active_ns = now_ns;
            let versions = &mut self.versions;
            match &shared.fault {
                Some(fault) if edits => {
                    let share = fault.share().unwrap_or_default();
                    let (chooser, mut out) = (&mut shared.chooser, Vec::new());
                    // An edit of a request never ends the connection.
                    let _ = self.requests.take(bytes, &mut out, |kind, request, out| {
                        let request = request.unwrap_or_default();
                        if kind == RequestKind::Item && !request.is_empty() && chooser.choose(share)
                        {
                            out.extend(edits::version_request(request));
                            versions.push_back(Some(edits::server_error(request)));
                        } else {
                            note(kind, versions);
                            out.extend_from_slice(request);
                        }
                        std::ops::ControlFlow::Continue(())
                    });
                    self.to_upstream.add(&out, now_ns, now_ns);
                }
                _ => {
                    self.requests.follow(bytes, |kind| note(kind, versions));
                    self.to_upstream.add(bytes, now_ns, now_ns);
                }
            }
        }
        if self.versions.len() > VERSIONS_MAX {
            return Err(ClosedBy::Client);
        }
        if self.client.has_ended && self.to_upstream.left() == 0 {
            upstream.finish();
        }
        Ok(busy)
    }

    /// The server is gone: read until the client closes.
    fn discard_requests(&mut self, shared: &mut Shared) -> Result<bool, ClosedBy> {
        for _ in 0..READS_PER_TURN {
            let read = self.client.read(&mut shared.scratch).map_err(|_| ClosedBy::Fault)?;
            if read.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Note the client's own requests for the version.
fn note(kind: RequestKind, versions: &mut VecDeque<Option<Vec<u8>>>) {
    if kind == RequestKind::Version {
        versions.push_back(None);
    }
}
