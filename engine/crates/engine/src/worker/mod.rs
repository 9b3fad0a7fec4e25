//! The verb `worker`: the native client as a worker.
//!
//! One thread reads requests, and one carries them out. The client's own threads measure and never write to
//! stdout.

mod call_log;
pub mod messages;
mod network;
mod pipes;
mod slices;
mod store;

use std::io::{self, BufRead};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use cachemark_load::{Client, InProcess, PhaseLimits, PrepareError, RunControl, RunResult};
use cachemark_tape::Tape;

use crate::options::connection_options::OptionError;
use crate::worker::messages::{Answer, Done, Phase, Prepare, Ready, Request, Run};
use crate::worker::pipes::{Incoming, failure, send, until_unix_ns};
use crate::worker::slices::{End, Requests};
use crate::worker::store::Target;

#[derive(clap::Args)]
pub struct Arguments {
    /// The target of the worker's tape
    #[arg(value_enum, default_value = "network")]
    target: Target,
}

/// How often progress is reported during a run.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let (sender, requests) = channel();
    thread::spawn(move || read_requests(&sender));
    let mut worker = Worker { requests, target: arguments.target, client: None, deferred: None };
    worker.serve();
    ExitCode::SUCCESS
}

fn read_requests(sender: &Sender<Incoming>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let request = serde_json::from_str(&line).map_err(|error| error.to_string());
        if sender.send(request).is_err() {
            return;
        }
    }
}

struct Worker {
    requests: Receiver<Incoming>,
    target: Target,
    client: Option<Prepared>,
    /// A request that ended slices, and is still to be answered.
    deferred: Option<Incoming>,
}

/// The client that plays the tape.
enum Prepared {
    Network(Box<Client>),
    InProcess(InProcess),
}

impl Prepared {
    fn run(&mut self, limits: PhaseLimits, control: &RunControl) -> io::Result<RunResult> {
        match self {
            Prepared::Network(client) => client.run(limits, control),
            Prepared::InProcess(callers) => Ok(callers.run(limits, control)),
        }
    }

    /// The memory of a store in the process now.
    fn store_bytes(&self) -> Option<u64> {
        match self {
            Prepared::Network(_) => None,
            Prepared::InProcess(callers) => Some(callers.store_bytes()),
        }
    }

    fn play_slices(&mut self, driver: &mut Requests<'_>) -> io::Result<RunResult> {
        let control = RunControl::default();
        match self {
            Prepared::Network(client) => client.play_slices(&control, driver),
            Prepared::InProcess(callers) => callers.play_slices(&control, driver),
        }
    }
}

impl Worker {
    /// Answer requests until `bye` or the end of stdin.
    fn serve(&mut self) {
        while let Ok(request) = self.deferred.take().map_or_else(|| self.requests.recv(), Ok) {
            let answer = match request {
                Ok(Request::Hello {}) => Answer::Ready(match self.target {
                    Target::Network => network::hello(),
                    target => store::hello(target),
                }),
                Ok(Request::Prepare(prepare)) => self.prepare(&prepare),
                Ok(Request::Run(run)) => match self.run(&run) {
                    Some(answer) => answer,
                    None => return,
                },
                Ok(Request::BeginSlices {}) => match self.play_slices() {
                    Some(answer) => answer,
                    None => continue,
                },
                Ok(Request::Slice(_) | Request::EndSlices {}) => {
                    failure("protocol", "no begin_slices before it".to_owned(), true)
                }
                Ok(Request::Stop {}) => continue,
                Ok(Request::Bye {}) => return,
                Err(text) => failure("protocol", text, true),
            };
            send(&answer);
        }
    }

    fn prepare(&mut self, prepare: &Prepare) -> Answer {
        let network = self.target == Target::Network;
        let prepared = match network {
            true => network::options(prepare).map(Some),
            false => store::check(prepare).map(|()| None),
        };
        let options = match prepared {
            Ok(options) => options,
            Err(OptionError::Unsupported(reason, remedy)) => return unsupported(reason, remedy),
            Err(OptionError::Failed(text)) => return failure("connect", text, true),
        };
        self.client = None;
        let tape = match Tape::open(Path::new(&prepare.tape)) {
            Ok(tape) => Arc::new(tape),
            Err(error) => return failure("tape", error.to_string(), true),
        };
        let prepared = match options {
            Some(options) => {
                Client::prepare(options, tape).map(|client| Prepared::Network(Box::new(client)))
            }
            None => store::prepare(self.target, prepare, tape).map(Prepared::InProcess),
        };
        match prepared {
            Ok(client) => {
                self.client = Some(client);
                Answer::Ready(Ready::default())
            }
            Err(PrepareError::Unsupported(reason)) if network => {
                unsupported(reason, "the text protocol, or another kind of operation")
            }
            Err(PrepareError::Unsupported(reason)) => {
                unsupported(reason, "operations with a reply, in a closed loop")
            }
            Err(PrepareError::Usage(text)) => failure("protocol", text, true),
            Err(error) => failure("connect", error.to_string(), true),
        }
    }

    /// Play slices until a request ends them. `None` if it is not `end_slices`.
    fn play_slices(&mut self) -> Option<Answer> {
        let Some(client) = self.client.as_mut() else {
            return Some(failure("protocol", "begin_slices before prepare".to_owned(), true));
        };
        let mut driver = Requests { incoming: &self.requests, end: None };
        match (client.play_slices(&mut driver), driver.end) {
            (Err(error), _) => Some(failure("internal", error.to_string(), false)),
            (Ok(result), Some(End::Done)) => {
                let store_bytes = client.store_bytes();
                let done = Done { store_bytes, ..Done::new(Phase::Measure, &result) };
                Some(Answer::Done(Box::new(done)))
            }
            (Ok(_), Some(End::Request(request))) => {
                self.deferred = Some(Ok(request));
                None
            }
            (Ok(_), _) => {
                self.deferred = Some(Ok(Request::Bye {}));
                None
            }
        }
    }

    /// Play a phase. `None` if the caller left during it.
    fn run(&mut self, run: &Run) -> Option<Answer> {
        let Some(client) = self.client.as_mut() else {
            return Some(failure("protocol", "run before prepare".to_owned(), true));
        };
        let logs_calls = !run.calls.is_empty();
        let control = if logs_calls { RunControl::with_call_log() } else { RunControl::default() };
        let requests = &self.requests;
        thread::scope(|scope| {
            let (ended, end) = channel();
            let handle = control.clone();
            let playing = scope.spawn(move || {
                let result = client.run(limits(run), &handle);
                let result = result.and_then(|result| {
                    if logs_calls {
                        call_log::write(&run.calls, &result.calls)?;
                    }
                    Ok((result, client.store_bytes()))
                });
                // The receiver is gone only if the caller left; then no thread needs this.
                let _ = ended.send(());
                result
            });
            let left = supervise(requests, &end, &control);
            let result = playing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match result {
                _ if left => None,
                Ok((result, store_bytes)) => {
                    let wrong_replies = call_log::wrong_replies(&result.calls);
                    let done = Done { store_bytes, wrong_replies, ..Done::new(run.phase, &result) };
                    Some(Answer::Done(Box::new(done)))
                }
                Err(error) => Some(failure("internal", error.to_string(), false)),
            }
        })
    }
}

/// Report progress and obey `stop` until the run has ended. True if the caller left.
fn supervise(requests: &Receiver<Incoming>, end: &Receiver<()>, control: &RunControl) -> bool {
    let mut waited = Duration::ZERO;
    let step = Duration::from_millis(10);
    loop {
        match end.recv_timeout(step) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return false,
        }
        waited += step;
        if waited >= PROGRESS_EVERY {
            waited = Duration::ZERO;
            let (ops, errors) = control.progress();
            send(&Answer::Progress { ops, errors });
        }
        match requests.try_recv() {
            Ok(Ok(Request::Stop {})) => control.stop(),
            Ok(Ok(Request::Bye {})) | Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                control.stop();
                return true;
            }
            Ok(Ok(_)) => send(&failure("protocol", "a run is in progress".to_owned(), true)),
            Ok(Err(text)) => send(&failure("protocol", text, true)),
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
        }
    }
}

fn unsupported(reason: String, remedy: &str) -> Answer {
    Answer::Unsupported { reason, remedy: remedy.to_owned() }
}

fn limits(run: &Run) -> PhaseLimits {
    if run.phase == Phase::Prefill {
        return PhaseLimits::Prefill;
    }
    PhaseLimits::Play {
        start_in_ns: until_unix_ns(run.start_unix_ns, SystemTime::now()),
        ops: run.ops,
        duration_ns: run.duration_ms.map(|ms| ms * 1_000_000),
    }
}
