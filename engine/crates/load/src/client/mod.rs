//! The native client: threads, their connections, and the phases of a trial.

mod control;
mod cpu;
mod error;
mod phase;
mod run_result;
mod slices;
mod supported;
mod threads;

use std::io;
use std::sync::Arc;

use cachemark_tape::Tape;
pub use control::RunControl;
pub use cpu::{cpu_times, pin_to_cpu};
pub use error::PrepareError;
pub use phase::PhaseLimits;
pub(crate) use phase::{window_of_phase, work_slice_of};
pub use run_result::RunResult;
pub use slices::{SliceDriver, SliceLimits};
pub(crate) use slices::{SlicePlayer, play_slices};
use threads::{ClientThreads, PhaseContext};

use crate::options::{Address, ClientOptions, IoBackend};
use crate::routing::KeyRouting;

/// A client with open connections.
pub struct Client {
    options: ClientOptions,
    tape: Arc<Tape>,
    /// If there are several servers.
    routing: Option<Arc<KeyRouting>>,
    client_threads: Box<dyn ClientThreads>,
    /// A prefill has begun.
    prefilled: bool,
}

impl Client {
    /// Check the options and open all connections.
    pub fn prepare(mut options: ClientOptions, tape: Arc<Tape>) -> Result<Client, PrepareError> {
        let ClientOptions { threads, connections, depth, segment, .. } = options;
        let usage = |text: String| Err(PrepareError::Usage(text));
        if threads == 0 || connections == 0 || depth == 0 {
            return usage("threads, connections and depth must be at least 1".to_owned());
        }
        if connections % threads != 0 {
            return Err(PrepareError::Unsupported(format!(
                "{connections} connections cannot be divided among {threads} threads"
            )));
        }
        if segment.0 >= segment.1 {
            return usage(format!("segment {} of {} does not exist", segment.0, segment.1));
        }
        if options.addresses.is_empty() {
            return usage("no server".to_owned());
        }
        if options.connection_options.replicas && options.addresses.len() == 1 {
            let reason = "replicas need several servers, and there is only one server".to_owned();
            return Err(PrepareError::Unsupported(reason));
        }
        supported::check_wire(&options)?;
        supported::check_kinds(&tape, &options)?;
        if let Some(reason) = supported::udp_unsupported(&options, &tape) {
            return Err(PrepareError::Unsupported(reason));
        }
        options.connection_options.io = supported::io_backend(&options)?;
        let ClientOptions { addresses, hashing, connection_options, .. } = &options;
        let routing = (addresses.len() > 1).then(|| {
            Arc::new(KeyRouting::new(&tape, addresses, *hashing, connection_options.replicas))
        });
        // A lane's operations on a key all go over one connection, in the lane's order.
        let any_udp = addresses.iter().any(|address| matches!(address, Address::Udp(_)));
        let in_order = depth == 1 || !(tape.has_think_times() || any_udp);
        let lanes = segment.1.checked_mul(threads as u64);
        if !in_order || connections != threads || lanes != Some(tape.generation_lanes()) {
            tape.accept_any_generation();
        }
        let client_threads = threads::open(&options)
            .map_err(|(address, error)| PrepareError::Connect(address, error))?;
        Ok(Client { options, tape, routing, client_threads, prefilled: false })
    }

    /// The I/O backend that its threads use.
    pub fn io(&self) -> IoBackend {
        self.options.connection_options.io
    }

    /// Play slices of the tape from its start on, whenever the driver says so, until it ends them.
    pub fn play_slices(
        &mut self,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<RunResult> {
        let limits = PhaseLimits::Play { start_in_ns: 0, ops: None, duration_ns: None };
        let mut window = window_of_phase(limits, self.options.timeout, 0);
        window.end_ns = window.start_ns;
        let phase = PhaseContext {
            options: &self.options,
            tape: &self.tape,
            routing: self.routing.as_deref(),
            limits,
            window,
            shared: &control.shared,
        };
        self.client_threads.play_slices(&phase, control, driver)
    }

    /// Play one phase on all threads. Returns when all operations have been answered or have timed out.
    pub fn run(&mut self, limits: PhaseLimits, control: &RunControl) -> io::Result<RunResult> {
        if let Some(reason) = supported::udp_phase_unsupported(limits, &self.options, &self.tape) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        if matches!(limits, PhaseLimits::Prefill) && std::mem::replace(&mut self.prefilled, true) {
            self.tape.accept_any_generation(); // the earlier prefill failed, and its writes may still arrive
        }
        let mut window = window_of_phase(limits, self.options.timeout, self.options.threads);
        if control.shared.intervals.is_some() {
            window.section_ns = None; // metrics of intervals have no sections
        }
        let before = cpu_times();
        let phase = PhaseContext {
            options: &self.options,
            tape: &self.tape,
            routing: self.routing.as_deref(),
            limits,
            window,
            shared: &control.shared,
        };
        let mut result = self.client_threads.play(&phase)?;
        if let Some(intervals) = &control.shared.intervals {
            intervals.complete(&mut result.metrics);
        }
        let after = cpu_times();
        Ok(RunResult {
            cpu_user_ns: after.0 - before.0,
            cpu_system_ns: after.1 - before.1,
            ..result
        })
    }
}
