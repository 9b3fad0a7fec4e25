//! The proxy's own cost of a round trip: the null responder asked directly, and through a proxy without a
//! distance.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cachemark_fault_proxy::distance::Distance;
use cachemark_load::Address;
use cachemark_null::{RequestCounting, Responder};

/// How often each is asked, in turns.
const TURNS: usize = 301;
/// Longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
const REPLY: &[u8] = b"END\r\n";

/// The median round trip through the proxy less the direct one; 0 if that is not shorter.
pub fn own_delay() -> io::Result<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let measured = measured(&stop);
    // The threads see it within the time that they sleep.
    stop.store(true, Ordering::Relaxed);
    measured
}

fn measured(stop: &Arc<AtomicBool>) -> io::Result<Duration> {
    let any = Address::parse("127.0.0.1:0").expect("an address");
    let mut responder = Responder::listen(&any, REPLY, RequestCounting::Lines)?;
    let server: SocketAddr = responder.address().parse().expect("an IP address");
    let mut proxy = Distance::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), &[server], Duration::ZERO)?;
    let (mut near, mut far) = (connect(server)?, connect(proxy.addresses()[0])?);
    let (ends, stops) = (Arc::clone(stop), Arc::clone(stop));
    // An error of theirs closes the connections, so the next answer fails.
    thread::spawn(move || responder.run(&ends));
    thread::spawn(move || proxy.run(&stops));
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        direct.push(round_trip(&mut near)?);
        through.push(round_trip(&mut far)?);
    }
    Ok(median(&mut through).saturating_sub(median(&mut direct)))
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn round_trip(stream: &mut TcpStream) -> io::Result<Duration> {
    let began = Instant::now();
    stream.write_all(b"get a\r\n")?;
    stream.read_exact(&mut [0; REPLY.len()])?;
    Ok(began.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
