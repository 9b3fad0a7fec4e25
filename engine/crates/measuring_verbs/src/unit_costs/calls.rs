//! Calls that a thread makes by itself, and allocations.

use std::hint::black_box;
use std::io::{Error, Write};
use std::net::{TcpListener, TcpStream};
use std::ptr;
use std::sync::atomic::AtomicU32;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Access, access};
use rustix::io::{Errno, read, write};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::net::{RecvFlags, recv};
use rustix::thread::futex;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::kind::{Kind, cpu_time_of};

const CALLS: u32 = 1000;
/// A listener's queue has room for as many connections that wait to be accepted.
const CONNECTIONS: u32 = 64;
const PAGE_BYTES: usize = 4096;
/// A short string: of every allocator's small sizes.
const ALLOCATED_BYTES: usize = 64;
pub const ONE: [u8; 8] = 1_u64.to_ne_bytes();

/// Every kind, by the name of its count in `cachemark why`.
pub fn own_calls() -> Result<Vec<Kind>, Error> {
    let event = eventfd(0, EventfdFlags::empty())?;
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
    let never = Itimerspec { it_interval: nothing, it_value: nothing };
    let word = AtomicU32::new(0);
    let (optioned, optioned_end) = connected()?;
    let (polled, polled_end) = connected()?;
    Ok(vec![
        plain("others", 1, || {
            black_box(rustix::process::getppid());
            Ok(())
        }),
        plain("files", 1, || access("/", Access::EXISTS)),
        plain("futexes", 1, move || futex::wake(&word, futex::Flags::PRIVATE, 1).map(drop)),
        plain("timers", 1, move || {
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &never).map(drop)
        }),
        plain("wakes", 2, move || {
            write(&event, &ONE)?;
            read(&event, &mut [0; 8]).map(drop)
        }),
        plain("memory", 2, || {
            let page = map(1)?;
            // SAFETY: nothing else knows the page.
            unsafe { munmap(page, PAGE_BYTES) }
        }),
        plain("allocations", 1, || {
            // SAFETY: nothing else knows the memory.
            unsafe { libc::free(black_box(libc::malloc(ALLOCATED_BYTES))) };
            Ok(())
        }),
        plain("options", 1, move || {
            let _open = &optioned_end;
            rustix::net::sockopt::set_tcp_nodelay(&optioned, true)
        }),
        plain("polls", 1, move || {
            let _open = &polled_end;
            poll(&mut [PollFd::new(&polled, PollFlags::OUT)], None).map(drop)
        }),
        empty_receives()?,
        full_receives()?,
        Kind { name: "connects", batch: Box::new(connects) },
        Kind { name: "faults", batch: Box::new(faults) },
    ])
}

/// A kind whose `calls` calls need nothing before a batch.
fn plain(
    name: &'static str,
    calls: u32,
    mut call: impl FnMut() -> Result<(), Errno> + 'static,
) -> Kind {
    let batch = move || Ok(cpu_time_of(CALLS, || Ok(call()?))? / f64::from(calls));
    Kind { name, batch: Box::new(batch) }
}

/// Two ends of a connection over loopback.
pub fn connected() -> Result<(TcpStream, TcpStream), Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

fn empty_receives() -> Result<Kind, Error> {
    let (stream, other_end) = connected()?;
    stream.set_nonblocking(true)?;
    Ok(plain("empty_recvs", 1, move || {
        let _open = &other_end;
        match recv(&stream, &mut [0], RecvFlags::empty()) {
            Err(Errno::AGAIN) => Ok(()),
            received => received.map(drop),
        }
    }))
}

fn full_receives() -> Result<Kind, Error> {
    let (stream, mut other_end) = connected()?;
    let batch = move || {
        other_end.write_all(&[0; CALLS as usize])?;
        cpu_time_of(CALLS, || Ok(recv(&stream, &mut [0], RecvFlags::empty()).map(drop)?))
    };
    Ok(Kind { name: "full_recvs", batch: Box::new(batch) })
}

/// A socket, a connection, and its end.
fn connects() -> Result<f64, Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    cpu_time_of(CONNECTIONS, || TcpStream::connect(address).map(drop))
}

fn map(pages: usize) -> Result<*mut std::ffi::c_void, Errno> {
    // SAFETY: the kernel chooses an address that is free.
    unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            pages * PAGE_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
}

fn faults() -> Result<f64, Error> {
    let bytes = CALLS as usize * PAGE_BYTES;
    let pages = map(CALLS as usize)?;
    // A huge page would be one fault. A kernel without huge pages refuses, and nothing is lost.
    // SAFETY: the advice changes no byte.
    let _ = unsafe { madvise(pages, bytes, Advice::LinuxNoHugepage) };
    let mut offset = 0;
    let cost = cpu_time_of(CALLS, || {
        // SAFETY: the byte is in one of the pages, which stay mapped for the time of the writes.
        unsafe { pages.cast::<u8>().add(offset).write_volatile(1) };
        offset += PAGE_BYTES;
        Ok(())
    });
    // SAFETY: nothing else knows the pages.
    unsafe { munmap(pages, bytes)? };
    cost
}
