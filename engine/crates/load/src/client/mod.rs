//! The native client as a whole: threads, their sockets, and the phases of a trial.

mod control;
mod cpu;
mod error;
mod phase;
mod run_result;
mod supported;
mod threads;

use std::io;
use std::sync::Arc;

use cachemark_tape::Tape;
pub use control::Control;
pub use cpu::{cpu_times, stay_on};
pub use error::PrepareError;
pub use phase::Limits;
pub(crate) use phase::{share_of, window_of};
pub use run_result::Session;
use threads::{Lanes, Phase};

use crate::options::{Configuration, Io};
use crate::routing::Spread;

/// A client with its connections open.
pub struct Client {
    configuration: Configuration,
    tape: Arc<Tape>,
    /// Where there are several servers.
    spread: Option<Arc<Spread>>,
    lanes: Box<dyn Lanes>,
}

impl Client {
    /// Open all connections.
    pub fn prepare(
        mut configuration: Configuration,
        tape: Arc<Tape>,
    ) -> Result<Client, PrepareError> {
        let Configuration { threads, connections, depth, segment, .. } = configuration;
        let usage = |text: String| Err(PrepareError::Usage(text));
        if threads == 0 || connections == 0 || depth == 0 {
            return usage("threads, connections and depth must be at least 1".to_owned());
        }
        if connections % threads != 0 {
            return usage(format!(
                "{connections} connections cannot be shared by {threads} threads"
            ));
        }
        if segment.0 >= segment.1 {
            return usage(format!("there is no segment {} of {}", segment.0, segment.1));
        }
        if configuration.addresses.is_empty() {
            return usage("no server".to_owned());
        }
        if configuration.way.replicas && configuration.addresses.len() == 1 {
            let reason = "replicas: every key is on the one server".to_owned();
            return Err(PrepareError::Unsupported(reason));
        }
        supported::check_kinds(&tape, &configuration)?;
        if let Some(reason) = supported::udp_refusal(&configuration, &tape) {
            return Err(PrepareError::Unsupported(reason));
        }
        configuration.way.io = supported::io_backend(&configuration)?;
        let Configuration { addresses, hashing, way, .. } = &configuration;
        let spread = (addresses.len() > 1)
            .then(|| Arc::new(Spread::new(&tape, addresses, *hashing, way.replicas)));
        let lanes = threads::open(&configuration)
            .map_err(|(address, error)| PrepareError::Connect(address, error))?;
        Ok(Client { configuration, tape, spread, lanes })
    }

    /// How its threads wait for their sockets.
    pub fn io(&self) -> Io {
        self.configuration.way.io
    }

    /// Play one phase on all threads; blocks until it is over and drained.
    pub fn run(&mut self, limits: Limits, control: &Control) -> io::Result<Session> {
        if let Some(reason) = supported::udp_phase_refusal(limits, &self.configuration, &self.tape)
        {
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let mut window = window_of(limits, self.configuration.timeout, self.configuration.threads);
        if control.shared.intervals.is_some() {
            window.section_ns = None; // a tally that is handed over has no parts
        }
        let before = cpu_times();
        let phase = Phase {
            configuration: &self.configuration,
            tape: &self.tape,
            spread: self.spread.as_deref(),
            limits,
            window,
            shared: &control.shared,
        };
        let mut session = self.lanes.play(&phase)?;
        if let Some(intervals) = &control.shared.intervals {
            intervals.complete(&mut session.tally);
        }
        let after = cpu_times();
        Ok(Session {
            cpu_user_ns: after.0 - before.0,
            cpu_system_ns: after.1 - before.1,
            ..session
        })
    }
}
