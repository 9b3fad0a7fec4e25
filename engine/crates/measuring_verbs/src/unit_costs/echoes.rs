//! Round trips to another thread, which waits for each: what a call costs that wakes and is woken.

use std::io::{Error, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use cachemark_load::pin_to_cpu;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use super::calls::{ONE, connected};
use super::kind::cpu_time_of;

const ROUND_TRIPS: u32 = 200;
/// A short request of memcached.
const MESSAGE: [u8; 32] = [b'k'; 32];

/// Messages over a connection, answered with the same bytes.
pub struct ByteEcho {
    near: TcpStream,
    peer: Option<JoinHandle<()>>,
}

impl ByteEcho {
    pub fn new(peer_cpu: Option<usize>) -> Result<ByteEcho, Error> {
        let (near, mut far) = connected()?;
        let peer = peer(peer_cpu, move || {
            let mut message = MESSAGE;
            while far.read_exact(&mut message).and_then(|()| far.write_all(&message)).is_ok() {}
        });
        Ok(ByteEcho { near, peer: Some(peer) })
    }

    /// The CPU time of this thread for one round trip, in ns.
    pub fn batch(&mut self) -> Result<f64, Error> {
        let mut message = MESSAGE;
        cpu_time_of(ROUND_TRIPS, || {
            self.near.write_all(&MESSAGE)?;
            self.near.read_exact(&mut message)
        })
    }
}

impl Drop for ByteEcho {
    fn drop(&mut self) {
        let _ = self.near.shutdown(Shutdown::Both);
        end(&mut self.peer);
    }
}

/// Wake-ups over two eventfds.
pub struct EventEcho {
    events: Arc<Events>,
    peer: Option<JoinHandle<()>>,
}

struct Events {
    there: OwnedFd,
    back: OwnedFd,
    ended: AtomicBool,
}

impl EventEcho {
    pub fn new(peer_cpu: Option<usize>) -> Result<EventEcho, Error> {
        let flags = EventfdFlags::empty();
        let events = Arc::new(Events {
            there: eventfd(0, flags)?,
            back: eventfd(0, flags)?,
            ended: AtomicBool::new(false),
        });
        let shared = Arc::clone(&events);
        let peer = peer(peer_cpu, move || {
            while read(&shared.there, &mut [0; 8]).is_ok() && !shared.ended.load(Ordering::Acquire)
            {
                let _ = write(&shared.back, &ONE);
            }
        });
        Ok(EventEcho { events, peer: Some(peer) })
    }

    /// The CPU time of this thread for one round trip, in ns.
    pub fn batch(&mut self) -> Result<f64, Error> {
        cpu_time_of(ROUND_TRIPS, || {
            write(&self.events.there, &ONE)?;
            read(&self.events.back, &mut [0; 8])?;
            Ok(())
        })
    }
}

impl Drop for EventEcho {
    fn drop(&mut self) {
        self.events.ended.store(true, Ordering::Release);
        let _ = write(&self.events.there, &ONE);
        end(&mut self.peer);
    }
}

fn peer(cpu: Option<usize>, echo: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        // On another CPU than was asked for, it answers all the same.
        let _ = cpu.map(pin_to_cpu);
        echo();
    })
}

fn end(peer: &mut Option<JoinHandle<()>>) {
    if let Some(thread) = peer.take() {
        let _ = thread.join();
    }
}
