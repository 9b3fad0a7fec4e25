//! The event loop of the server: it sends what is due in time, and reads requests.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, mem::MaybeUninit};

use cachemark_server::{Endpoint, Settings, State};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use socket2::Socket;

use crate::clock::monotonic_ns;
use crate::connection::{Connection, ConnectionStatus, ServerContext};
use crate::log::ReadLog;
use crate::planner::ReplyPlanner;
use crate::script::Script;
use crate::timers::{Timer, TimerQueue};

const MAX_EVENTS: usize = 256;
/// The event data of listeners start here, far above connections'.
const LISTENERS: u64 = 1 << 32;
/// How long the thread spins before a reply is due: timers wake it 30 to 90 µs late.
const SPIN_NS: u64 = 150_000;
/// The maximum sleep, after which the stop flag is checked.
const MAX_SLEEP_NS: u64 = 50_000_000;

/// The options of a scripted server.
pub struct ScriptedServerSettings {
    pub script: Script,
    pub store: Settings,
    pub version: &'static str,
    /// The capacity of the log. Further reads are answered and only counted.
    pub log_requests: usize,
}

struct Listener {
    listener: Socket,
    path: Option<std::path::PathBuf>,
    address: String,
    /// When waiting connections are accepted.
    accept_at_ns: Option<u64>,
}

/// A memcached server whose reads are answered by a script.
pub struct ScriptedServer {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    connections: Vec<Option<Connection>>,
    next_generation: u64,
    context: ServerContext,
}

impl ScriptedServer {
    /// Start to listen. Port 0: the system chooses one.
    pub fn listen(
        endpoints: &[Endpoint],
        settings: ScriptedServerSettings,
    ) -> io::Result<ScriptedServer> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut listeners = Vec::new();
        for (number, endpoint) in endpoints.iter().enumerate() {
            let listener = open(endpoint)?;
            let data = EventData::new_u64(LISTENERS + number as u64);
            epoll::add(&epoll, &listener.listener, data, EventFlags::IN)?;
            listeners.push(listener);
        }
        let context = ServerContext {
            state: State::new(settings.store, settings.version),
            key_prefix: settings.script.key_prefix.clone().into_bytes(),
            planner: ReplyPlanner::new(&settings.script),
            log: ReadLog::with_capacity(settings.log_requests),
            timers: TimerQueue::with_capacity(4096),
            began_ns: None,
            now_s: 0,
        };
        Ok(ScriptedServer {
            epoll,
            listeners,
            connections: Vec::new(),
            next_generation: 0,
            context,
        })
    }

    /// The addresses that it listens on.
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(|listener| listener.address.clone()).collect()
    }

    /// The result of each read since the script started.
    pub fn log(&self) -> &ReadLog {
        &self.context.log
    }

    /// Serve until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        // By default the kernel may wake the thread 50 µs late. If this is not permitted, the lag is
        // larger.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        while !stop.load(Ordering::Relaxed) {
            self.send_due()?;
            let sleep = sleep_time(self.next_ns(), monotonic_ns());
            let (events, _) = match epoll::wait(&self.epoll, &mut room, Some(&sleep)) {
                Ok(waited) => waited,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            self.context.now_s = now_s();
            for event in events {
                let (number, flags) = (event.data.u64(), event.flags);
                if number >= LISTENERS {
                    self.delay_accept((number - LISTENERS) as usize)?;
                } else if flags.contains(EventFlags::OUT) {
                    self.flush(number as usize)?;
                } else {
                    self.read(number as usize)?;
                }
            }
        }
        Ok(())
    }

    fn next_ns(&self) -> Option<u64> {
        let listeners = self.listeners.iter().filter_map(|listener| listener.accept_at_ns);
        listeners.chain(self.context.timers.next_ns()).min()
    }

    fn send_due(&mut self) -> io::Result<()> {
        while let Some(Timer { slot, generation, .. }) = self.context.timers.due(monotonic_ns()) {
            if self.connections[slot]
                .as_ref()
                .is_some_and(|connection| connection.generation == generation)
            {
                self.flush(slot)?;
            }
        }
        let now_ns = monotonic_ns();
        for number in 0..self.listeners.len() {
            if self.listeners[number]
                .accept_at_ns
                .is_some_and(|accept_at_ns| accept_at_ns <= now_ns)
            {
                self.listeners[number].accept_at_ns = None;
                self.watch_listener(number, EventFlags::IN)?;
                self.accept(number)?;
            }
        }
        Ok(())
    }

    /// A client connects: accept it after the delay of the script.
    fn delay_accept(&mut self, number: usize) -> io::Result<()> {
        let wait_ns = self.context.planner.accept_ns();
        if wait_ns == 0 {
            return self.accept(number);
        }
        self.listeners[number].accept_at_ns = Some(monotonic_ns() + wait_ns);
        self.watch_listener(number, EventFlags::empty())
    }

    fn watch_listener(&self, number: usize, flags: EventFlags) -> io::Result<()> {
        let data = EventData::new_u64(LISTENERS + number as u64);
        Ok(epoll::modify(&self.epoll, &self.listeners[number].listener, data, flags)?)
    }

    fn accept(&mut self, number: usize) -> io::Result<()> {
        loop {
            let socket = match self.listeners[number].listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if !self.context.state.try_admit() {
                continue;
            }
            socket.set_nonblocking(true)?;
            if self.listeners[number].path.is_none() {
                socket.set_tcp_nodelay(true)?;
            }
            self.context.log.accept();
            let free = self.connections.iter().position(Option::is_none);
            let slot = free.unwrap_or(self.connections.len());
            epoll::add(&self.epoll, &socket, EventData::new_u64(slot as u64), EventFlags::IN)?;
            self.next_generation += 1;
            let connection =
                Connection::new(socket, slot, self.next_generation, self.next_generation);
            match free {
                Some(slot) => self.connections[slot] = Some(connection),
                None => self.connections.push(Some(connection)),
            }
        }
    }

    fn read(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else { return Ok(()) };
        let status = connection.read(&mut self.context);
        self.apply_status(slot, status, false)
    }

    fn flush(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else { return Ok(()) };
        let was_blocked = connection.blocked;
        let status = connection.flush(monotonic_ns(), &mut self.context);
        self.apply_status(slot, status, was_blocked)
    }

    fn apply_status(
        &mut self,
        slot: usize,
        status: ConnectionStatus,
        was_blocked: bool,
    ) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else { return Ok(()) };
        let flags = match status {
            ConnectionStatus::Close => {
                self.context.state.release();
                // Dropping the socket removes it from epoll.
                self.connections[slot] = None;
                return Ok(());
            }
            ConnectionStatus::Blocked => EventFlags::OUT,
            ConnectionStatus::Open if was_blocked => EventFlags::IN,
            ConnectionStatus::Open => return Ok(()),
        };
        connection.blocked = status == ConnectionStatus::Blocked;
        Ok(epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(slot as u64), flags)?)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        for path in self.listeners.iter().filter_map(|listener| listener.path.as_ref()) {
            // An error means that the file is gone already.
            let _ = fs::remove_file(path);
        }
    }
}

fn open(endpoint: &Endpoint) -> io::Result<Listener> {
    let (listener, path, address) = match endpoint {
        Endpoint::Tcp(address) | Endpoint::TcpWith(address, _) => {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?.to_string();
            (Socket::from(listener), None, address)
        }
        Endpoint::Unix(path) => {
            let listener = OwnedFd::from(UnixListener::bind(path)?);
            (listener.into(), Some(path.clone()), format!("unix:{}", path.display()))
        }
        Endpoint::Udp(address) => {
            let reason = format!("udp:{address}: a scripted server does not support UDP");
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
    };
    listener.set_nonblocking(true)?;
    Ok(Listener { listener, path, address, accept_at_ns: None })
}

/// How long to sleep before the next timer. The thread spins for the rest.
fn sleep_time(next_ns: Option<u64>, now_ns: u64) -> Timespec {
    let left_ns = next_ns.map_or(u64::MAX, |next_ns| next_ns.saturating_sub(now_ns));
    let sleep_ns = left_ns.saturating_sub(SPIN_NS).min(MAX_SLEEP_NS);
    Timespec { tv_sec: 0, tv_nsec: sleep_ns as i64 }
}

fn now_s() -> u32 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_spins_before_a_timer() {
        let sleep_ns = |next_ns: Option<u64>| sleep_time(next_ns, 1_000_000).tv_nsec;
        assert_eq!(sleep_ns(None), MAX_SLEEP_NS as i64);
        assert_eq!(sleep_ns(Some(2_000_000)), 850_000);
        assert_eq!(sleep_ns(Some(1_100_000)), 0);
        assert_eq!(sleep_ns(Some(0)), 0);
    }
}
