//! The event loop: it accepts clients, moves bytes, and obeys commands.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use cachemark_scripted::monotonic_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::command::Command;
use crate::command_sender::{CommandSender, Message};
use crate::connection::end::End;
use crate::connection::{Connection, Shared, Status};
use crate::edits::{Chooser, TOO_MANY_CONNECTIONS};
use crate::fault::Fault;
use crate::listener::{Listener, Mode};
use crate::log::{ClosedBy, Event as Logged, Log};

const MAX_EVENTS: usize = 256;
const READ_BYTES: usize = 64 * 1024;
const LISTENER: u64 = u64::MAX;
const COMMANDS: u64 = u64::MAX - 1;
/// The longest sleep, after which the stop flag is checked, and the listener if there were too many connections.
const MAX_SLEEP_NS: u64 = 50_000_000;

/// The options of a proxy.
pub struct FaultProxySettings {
    pub listen: SocketAddr,
    pub upstream: SocketAddr,
    /// Further clients wait. A connection holds a few MiB at most, which its peers have sent and not read.
    pub connections_max: usize,
    pub log: Option<File>,
    /// Further events are only counted.
    pub log_events_max: usize,
}

/// The answer to a command: when it was in force, or what is wrong with it.
pub type Answer = Result<u64, String>;

pub struct FaultProxy {
    epoll: OwnedFd,
    listener: Listener,
    upstream: SocketAddr,
    connections: Vec<Option<Connection>>,
    /// How many slots have a connection, and how many may have one.
    open: usize,
    connections_max: usize,
    accepted: u64,
    /// Slots with something to do at once.
    busy: Vec<usize>,
    shared: Shared,
    /// The fault in force as it was written.
    written: serde_json::Value,
    messages: Receiver<Message>,
    commands: CommandSender,
}

impl FaultProxy {
    /// Start to listen. Port 0: the system chooses one.
    pub fn listen(settings: FaultProxySettings) -> io::Result<FaultProxy> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (commands, messages) = CommandSender::new()?;
        epoll::add(&epoll, commands.wake(), EventData::new_u64(COMMANDS), EventFlags::IN)?;
        let proxy = FaultProxy {
            epoll,
            listener: Listener::new(settings.listen)?,
            upstream: settings.upstream,
            connections: Vec::new(),
            open: 0,
            connections_max: settings.connections_max,
            accepted: 0,
            busy: Vec::new(),
            shared: Shared {
                fault: None,
                fault_number: 0,
                chooser: Chooser::default(),
                log: Log::new(settings.log, settings.log_events_max),
                now_ns: monotonic_ns(),
                has_delayed: false,
                scratch: vec![0; READ_BYTES],
            },
            written: serde_json::Value::Null,
            messages,
            commands,
        };
        proxy.watch_listener()?;
        Ok(proxy)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    pub fn commands(&self) -> CommandSender {
        self.commands.clone()
    }

    /// Pass bytes and obey commands until `stop` is set or a sender stops it. `answer` gets the answer to each
    /// command: when it was in force, or what is wrong with it. An error of `answer` ends the proxy.
    pub fn run<E: From<io::Error>>(
        &mut self,
        stop: &AtomicBool,
        mut answer: impl FnMut(&Answer) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        while !stop.load(Ordering::Relaxed) {
            let sleep = Timespec { tv_sec: 0, tv_nsec: self.sleep_ns() as _ };
            let (events, _) = match epoll::wait(&self.epoll, &mut room, Some(&sleep)) {
                Ok(waited) => waited,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            };
            self.shared.now_ns = monotonic_ns();
            for event in events {
                match event.data.u64() {
                    LISTENER | COMMANDS => {}
                    number => self.note(number as usize, event.flags),
                }
            }
            self.accept();
            self.pump_due();
            let goes_on = self.obey(&mut answer)?;
            self.shared.log.flush();
            if !goes_on {
                break;
            }
        }
        self.end();
        Ok(())
    }

    /// An event of a connection: its slot and which of its ends.
    fn note(&mut self, number: usize, flags: EventFlags) {
        let Some(Some(connection)) = self.connections.get_mut(number / 2) else { return };
        let end = match number % 2 {
            0 => Some(&mut connection.client),
            _ => connection.upstream.as_mut(),
        };
        let Some(end) = end else { return };
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        end.is_readable |= failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        end.is_writable |= failed || flags.contains(EventFlags::OUT);
        if self.busy.last() != Some(&(number / 2)) {
            self.busy.push(number / 2);
        }
    }

    /// Let every connection do what it can that has something to do.
    fn pump_due(&mut self) {
        let busy = std::mem::take(&mut self.busy);
        busy.into_iter().for_each(|slot| self.pump(slot));
        if !self.shared.is_timed() {
            return;
        }
        for slot in 0..self.connections.len() {
            let connection = self.connections[slot].as_ref();
            let due_ns = connection.and_then(|each| each.next_due_ns(&self.shared));
            if due_ns.is_some_and(|due_ns| due_ns <= self.shared.now_ns) {
                self.pump(slot);
            }
        }
        self.shared.has_delayed = self.next_due_ns().is_some();
    }

    fn pump(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        match connection.pump(&mut self.shared) {
            Status::Open => {}
            Status::Busy => self.busy.push(slot),
            Status::Closed(by) => self.close(slot, by),
        }
    }

    fn pump_all(&mut self) {
        self.busy.clear();
        (0..self.connections.len()).for_each(|slot| self.pump(slot));
    }

    /// Dropping the sockets removes them from epoll.
    fn close(&mut self, slot: usize, by: ClosedBy) {
        if let Some(connection) = self.connections[slot].take() {
            self.open -= 1;
            connection.log_end(by, &mut self.shared.log);
        }
    }

    fn reset_all(&mut self) {
        for slot in 0..self.connections.len() {
            if let Some(connection) = &self.connections[slot] {
                connection.reset_at_close();
            }
            self.close(slot, ClosedBy::Fault);
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let connections = self.connections.iter().flatten();
        connections.filter_map(|each| each.next_due_ns(&self.shared)).min()
    }

    fn sleep_ns(&self) -> u64 {
        if !self.busy.is_empty() {
            return 0;
        }
        let next_ns = if self.shared.is_timed() { self.next_due_ns() } else { None };
        let until = |next_ns: u64| next_ns.saturating_sub(monotonic_ns());
        next_ns.map_or(MAX_SLEEP_NS, |next_ns| until(next_ns).min(MAX_SLEEP_NS))
    }

    fn watch_listener(&self) -> io::Result<()> {
        match self.listener.socket() {
            Some(socket) => {
                let data = EventData::new_u64(LISTENER);
                Ok(epoll::add(&self.epoll, socket, data, EventFlags::IN | EventFlags::ET)?)
            }
            None => Ok(()),
        }
    }

    /// Accept the clients that wait. If there are too many connections or open files, the rest waits for a later turn.
    fn accept(&mut self) {
        while self.open < self.connections_max
            && let Ok(Some(client)) = self.listener.accept()
        {
            // The client may be gone already: then nothing has to be served.
            let _ = self.admit(client);
        }
    }

    fn admit(&mut self, client: TcpStream) -> io::Result<()> {
        client.set_nonblocking(true)?;
        let number = self.accepted;
        self.accepted += 1;
        let (server, farewell) = match self.shared.fault {
            Some(Fault::TooManyConnections { .. }) => (None, TOO_MANY_CONNECTIONS),
            Some(Fault::SwitchUpstream { to }) => (Some(to), &b""[..]),
            _ => (Some(self.upstream), &b""[..]),
        };
        let upstream = server.map_or_else(String::new, |server| server.to_string());
        self.shared.log.add(Logged::Accepted { connection: number, upstream });
        let server = server.map(connect).transpose();
        let resets = matches!(self.shared.fault, Some(Fault::Reset { new_too: true }));
        let failed = server.is_err();
        let now_ns = self.shared.now_ns;
        let connection =
            Connection::new(number, client, server.unwrap_or_default(), farewell, now_ns);
        if resets || failed {
            connection.reset_at_close();
            let by = if resets { ClosedBy::Fault } else { ClosedBy::Upstream };
            connection.log_end(by, &mut self.shared.log);
            return Ok(());
        }
        self.watch(connection)
    }

    /// Give a connection a slot, and watch its sockets.
    fn watch(&mut self, connection: Connection) -> io::Result<()> {
        let free = self.connections.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.connections.len());
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let watch = |end: &End, side: u64| {
            let data = EventData::new_u64(slot as u64 * 2 + side);
            epoll::add(&self.epoll, end.socket().as_fd(), data, flags)
        };
        watch(&connection.client, 0)?;
        if let Some(upstream) = &connection.upstream {
            watch(upstream, 1)?;
        }
        self.open += 1;
        match free {
            Some(slot) => self.connections[slot] = Some(connection),
            None => self.connections.push(Some(connection)),
        }
        Ok(())
    }

    /// Obey the commands that have come. Returns whether the proxy goes on.
    fn obey<E: From<io::Error>>(
        &mut self,
        answer: &mut impl FnMut(&Answer) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.commands.sleep();
        while let Ok(message) = self.messages.try_recv() {
            let Message::Command(command) = message else { return Ok(false) };
            let applied = command.and_then(|command| {
                self.apply(command).map_err(|error| format!("it cannot be applied: {error}"))
            });
            self.shared.log.flush();
            answer(&applied.map(|()| self.shared.now_ns))?;
        }
        Ok(true)
    }

    /// End the fault in force, and start another one.
    fn apply(&mut self, command: Command) -> io::Result<()> {
        self.accept();
        let (fault, written) = match command {
            Command::Start { fault, written } => (Some(fault), written),
            Command::End => (None, serde_json::Value::Null),
        };
        if self.shared.fault.take().is_some() {
            self.shared.log.add(Logged::FaultEnded { fault: &self.written });
        }
        self.written = written;
        self.shared.fault_number += 1;
        self.shared.chooser = Chooser::default();
        self.listen_as(&fault)?;
        let resets = fault.as_ref().is_some_and(Fault::resets_existing);
        self.shared.fault = fault;
        if resets {
            self.reset_all();
        }
        self.accept();
        self.pump_all();
        self.shared.now_ns = monotonic_ns();
        if self.shared.fault.is_some() {
            self.shared.log.add(Logged::FaultStarted { fault: &self.written });
        }
        Ok(())
    }

    fn listen_as(&mut self, fault: &Option<Fault>) -> io::Result<()> {
        let mode = match fault {
            Some(Fault::Refuse { .. }) => Mode::Refusing,
            Some(Fault::FullBacklog { .. }) => Mode::Full,
            _ => Mode::Accepting,
        };
        let had_socket = self.listener.socket().is_some();
        if mode != self.listener.mode() {
            self.listener.set_mode(mode)?;
        }
        if had_socket { Ok(()) } else { self.watch_listener() }
    }

    fn end(&mut self) {
        for slot in 0..self.connections.len() {
            self.close(slot, ClosedBy::End);
        }
        self.shared.log.end();
    }
}

/// Begin to connect; the event loop learns when it is done.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(address)) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
