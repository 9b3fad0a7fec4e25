//! Packets that were captured: a file, or what `tcpdump -w -` writes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cachemark_command::process::print_error;
use cachemark_command::whole_file;
use cachemark_packets::{Capture, Limits};
use cachemark_trace::{Conversion, Converted, convert_requests, unpacked};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::arguments::{Arguments, written};

const BUFFER_BYTES: usize = 1 << 20;
const STDIN: &str = "-";
const POLL: Duration = Duration::from_millis(100);
/// After a signal, what captures gets it too: so long its last packets are awaited.
const LAST_PACKETS_WAIT: Duration = Duration::from_secs(2);

/// Whether a source is a capture: everything but HOST:PORT, and a file with such a name.
pub fn is_capture(source: &str) -> bool {
    let port = source.rsplit_once(':').map(|(_, port)| port);
    port.is_none_or(|port| port.parse::<u16>().is_err()) || Path::new(source).exists()
}

/// Read a capture to its end, or until a limit or a signal. An error names the capture or the trace.
pub fn record(arguments: &Arguments, ends: Arc<AtomicBool>) -> Result<Converted, String> {
    let source = &arguments.source;
    let name = if source == STDIN { "stdin" } else { source };
    let place = |error: String| format!("{name}: {error}");
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => place("no such file; a memcached is HOST:PORT".to_owned()),
        _ => place(format!("it cannot be read: {error}")),
    };
    let bytes = arguments.size.unwrap_or(u64::MAX);
    let (from, ends): (Box<dyn BufRead>, _) = if source == STDIN {
        print_error(&format!("reading packets from stdin {}", arguments.end()));
        let until = arguments.duration.and_then(|duration| Instant::now().checked_add(duration));
        let live = Live { ends, until };
        (Box::new(BufReader::with_capacity(BUFFER_BYTES, live)), None)
    } else {
        whole_file::check_other(&arguments.out, Path::new(source))?;
        let file = File::open(source).map_err(unreadable)?;
        (Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), Some(ends))
    };
    let from = Bounded { from: unpacked(from).map_err(unreadable)?, bytes, ends };
    let ports = arguments.port.clone().unwrap_or_default();
    let limits = Limits { duration: arguments.duration, requests: arguments.requests };
    let mut capture = Capture::open(from, ports, limits).map_err(place)?;
    let source = Some("captured packets".to_owned());
    let conversion = Conversion { source, ..arguments.conversion() };
    written(&arguments.out, |into| {
        convert_requests(&mut capture, "packets", &conversion, into).map_err(place)
    })
}

/// stdin, which also ends after a signal or at a time.
struct Live {
    ends: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Read for Live {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        loop {
            let signalled = self.ends.load(Ordering::Relaxed);
            if signalled
                && self.until.is_none_or(|until| until > Instant::now() + LAST_PACKETS_WAIT)
            {
                self.until = Some(Instant::now() + LAST_PACKETS_WAIT);
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(0);
            }
            let timeout = Timespec::try_from(POLL).map_err(io::Error::other)?;
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut ready, Some(&timeout)) {
                Ok(0) => {}
                Ok(_) => return rustix::io::read(stdin.as_fd(), into).map_err(io::Error::from),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The first bytes of a capture.
struct Bounded {
    from: Box<dyn BufRead>,
    bytes: u64,
    /// A signal ends a file; stdin ends by itself.
    ends: Option<Arc<AtomicBool>>,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ends.as_ref().is_some_and(|ends| ends.load(Ordering::Relaxed)) {
            return Ok(0);
        }
        let most = into.len().min(self.bytes.try_into().unwrap_or(usize::MAX));
        let read = self.from.read(&mut into[..most])?;
        self.bytes -= read as u64;
        Ok(read)
    }
}
