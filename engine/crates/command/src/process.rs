//! The common part of all verbs' processes: the exit code of an error, JSON lines on stdout, and the
//! signals that end it.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::foreign_text::clean;

/// Print one line on stderr and return the exit code for bad input.
pub fn fail(error: String) -> ExitCode {
    print_error(&error);
    ExitCode::from(2)
}

/// Print one line on stderr. If that is closed or full, there is no place to say so.
pub fn print_error(error: &str) {
    let _ = writeln!(io::stderr(), "cachemark-engine: {}", clean(error));
}

/// Show what was wrong with the command line, or the help or the version that it asked for.
pub fn show(shown: &clap::Error) -> ExitCode {
    let printed = shown.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(error) if !shown.use_stderr() => stdout_failed(&error),
        _ => ExitCode::from(u8::try_from(shown.exit_code()).unwrap_or(2)),
    }
}

/// Print text on stdout and flush it. If stdout is closed or full, say so and exit with 1.
pub fn print_text(text: impl Display) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        stdout_failed(&error);
    }
}

/// End the program because stdout cannot be written.
pub fn stdout_failed(error: &io::Error) -> ! {
    print_error(&format!("stdout cannot be written: {error}"));
    std::process::exit(1);
}

/// End a listing. Nothing is wrong if the reader has closed the pipe, because it has read enough.
pub fn end_listing<T>(written: io::Result<T>) {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => stdout_failed(&error),
        _ => (),
    }
}

/// Print one JSON document on a line of stdout, as `print_text` does.
pub fn print_compact_json(document: &impl Serialize) {
    print_text(format_args!("{}\n", serde_json::to_string(document).expect("plain values")));
}

/// Print one line of JSON on stdout and flush it.
pub fn print_json_line(message: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(message).expect("plain values");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("stdout is closed: {error}"))
}

/// Print an indented JSON document on stdout.
pub fn print_json_document(document: &impl Serialize) {
    print_text(format_args!("{}\n", serde_json::to_string_pretty(document).expect("plain values")));
}

/// The signals that end a program, for a verb whose main thread has nothing to do but wait for them.
pub struct StopSignals {
    signals: Signals,
    hangup_reloads: bool,
}

impl StopSignals {
    /// Catch SIGTERM, SIGINT and SIGHUP from now on. Call this before anything starts, so that none is missed.
    pub fn catch() -> Result<StopSignals, String> {
        StopSignals::caught(&ending_signals(), false)
    }

    /// The same, and other signals; SIGHUP does not end the program.
    pub fn catch_and_reload(others: &[i32]) -> Result<StopSignals, String> {
        StopSignals::caught(&[&[SIGTERM, SIGINT, SIGHUP][..], others].concat(), true)
    }

    fn caught(numbers: &[i32], hangup_reloads: bool) -> Result<StopSignals, String> {
        let signals = Signals::new(numbers).map_err(|error| error.to_string())?;
        Ok(StopSignals { signals, hangup_reloads })
    }

    /// Block until a signal comes or, if `or_stdin_end`, until stdin ends.
    pub fn wait(self, or_stdin_end: bool) {
        self.wait_and_reload(or_stdin_end, || ());
    }

    /// The same; `reload` is called at each SIGHUP that does not end the program. Returns the signal that came.
    pub fn wait_and_reload(mut self, or_stdin_end: bool, mut reload: impl FnMut()) -> Option<i32> {
        let (come, signals) = channel();
        if or_stdin_end {
            let come = come.clone();
            thread::spawn(move || {
                wait_for_stdin_end();
                let _ = come.send(None);
            });
        }
        thread::spawn(move || {
            for signal in self.signals.forever() {
                // The receiver is gone once the program ends.
                let _ = come.send(Some(signal));
            }
        });
        loop {
            match signals.recv() {
                Ok(Some(SIGHUP)) if self.hangup_reloads => reload(),
                Ok(signal) => return signal,
                Err(_) => return None,
            }
        }
    }
}

/// Let SIGTERM, SIGINT and SIGHUP through: a parent that left them blocked could end a program only with SIGKILL.
///
/// Call this before any thread starts: threads inherit what is blocked.
pub fn unblock_ending_signals() {
    // SAFETY: sigemptyset makes the set valid. The calls read and write nothing but the set and this thread's mask.
    unsafe {
        let mut ending: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ending);
        for number in [SIGTERM, SIGINT, SIGHUP] {
            libc::sigaddset(&mut ending, number);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &ending, std::ptr::null_mut());
    }
}

/// The signals that end a program: SIGHUP too, unless it is ignored, as under nohup.
fn ending_signals() -> Vec<i32> {
    // SAFETY: all zeros are a valid value, which the call overwrites. It changes nothing else.
    let ignored = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(SIGHUP, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    };
    let hangup = if ignored { None } else { Some(SIGHUP) };
    [SIGTERM, SIGINT].into_iter().chain(hangup).collect()
}

/// A flag for a verb whose main thread runs a loop: set by SIGTERM, SIGINT, SIGHUP and, if
/// `or_stdin_end`, by the end of stdin.
pub fn stop_flag(or_stdin_end: bool) -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ending_signals() {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| error.to_string())?;
    }
    if or_stdin_end {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            wait_for_stdin_end();
            stop.store(true, Ordering::Relaxed);
        });
    }
    Ok(stop)
}

/// Block until the caller closes stdin or dies.
fn wait_for_stdin_end() {
    let mut ignored = [0; 256];
    while io::stdin().lock().read(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
}
