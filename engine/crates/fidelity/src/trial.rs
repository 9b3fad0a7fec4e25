//! One simulated trial: a tape, a load and a scripted server.

use cachemark_load::{
    Clock, EventLoop, KindMetrics, Player, Refill, RunResult, SECTION_COUNT, SharedState,
    ThreadConnections, Window, WorkSlice, percentile_ns,
};
use cachemark_tape::{
    Arrivals, IntegerRange, KeyDistribution, KeyShape, Lane, Order, Schedule, Tape, Think,
    Workload, generate, parse_mix, parse_sequence,
};

use crate::ground_truth::GroundTruth;
use crate::script::Script;
use crate::simulated_network::{ProcessPause, SimulatedNetwork};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// The options of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    schedule: Schedule,
    window_ns: u64,
    ops: u64,
    group: u32,
    connections: usize,
    depth: usize,
    refill: Refill,
    timeout_ns: u64,
    value_bytes: u32,
    warmup_ns: u64,
    pause: Option<ProcessPause>,
    io_call_ns: u64,
    seed: u64,
}

/// The client's record, and the truth.
pub struct TrialResult {
    pub result: RunResult,
    pub ground_truth: GroundTruth,
    pub open_loop: bool,
    pub thinks: bool,
    pub window_ns: u64,
}

impl Trial {
    pub fn uniform(rate: f64, seconds: u64) -> Trial {
        let duration_ns = seconds * SECOND;
        Trial::of(Schedule::Open { arrivals: Arrivals::Uniform, rate, duration_ns }, duration_ns)
    }

    pub fn poisson(rate: f64, seconds: u64) -> Trial {
        let duration_ns = seconds * SECOND;
        Trial::of(Schedule::Open { arrivals: Arrivals::Poisson, rate, duration_ns }, duration_ns)
    }

    pub fn closed(seconds: u64) -> Trial {
        Trial::of(Schedule::closed(1000), seconds * SECOND)
    }

    /// A closed loop with a fixed think time.
    pub fn with_think_time(think_ns: u64, seconds: u64) -> Trial {
        let think = Think::Fixed { ns: think_ns };
        Trial::of(Schedule::Closed { ops: 1000, think }, seconds * SECOND)
    }

    fn of(schedule: Schedule, window_ns: u64) -> Trial {
        Trial {
            schedule,
            window_ns,
            ops: u64::MAX,
            group: 1,
            connections: 64,
            depth: 64,
            refill: Refill::Each,
            timeout_ns: 10 * SECOND,
            value_bytes: 0,
            warmup_ns: 0,
            pause: None,
            io_call_ns: 0,
            seed: 1,
        }
    }

    /// Limit the number of operations.
    pub fn ops(self, ops: u64) -> Trial {
        Trial { ops, ..self }
    }

    /// Play the tape's records in groups of this length.
    pub fn groups(self, length: u32) -> Trial {
        Trial { group: length, ..self }
    }

    pub fn with_connections(self, connections: usize, depth: usize) -> Trial {
        Trial { connections, depth, ..self }
    }

    /// Send the next operations of a connection when all of it have ended.
    pub fn refilling_all(self) -> Trial {
        Trial { refill: Refill::All, ..self }
    }

    pub fn timeout(self, timeout_ns: u64) -> Trial {
        Trial { timeout_ns, ..self }
    }

    pub fn values(self, value_bytes: u32) -> Trial {
        Trial { value_bytes, ..self }
    }

    /// Play for this long before the window. It is not counted.
    pub fn warmup(self, warmup_ns: u64) -> Trial {
        Trial { warmup_ns, ..self }
    }

    pub fn pause(self, pause: ProcessPause) -> Trial {
        Trial { pause: Some(pause), ..self }
    }

    /// Let each read and each write take the client this long.
    pub fn io_call_time(self, io_call_ns: u64) -> Trial {
        Trial { io_call_ns, ..self }
    }

    /// Connections, depth and timeout.
    #[cfg(test)]
    pub fn load(&self) -> (usize, usize, u64) {
        (self.connections, self.depth, self.timeout_ns)
    }

    pub fn tape(&self) -> Tape {
        let keys = match self.schedule {
            Schedule::Closed { ops, .. } => ops as u32,
            // The number of arrivals of a Poisson process varies by a few σ.
            Schedule::Open { rate, .. } => {
                let mean = rate * self.window_ns as f64 / 1e9;
                (mean + 10.0 * mean.sqrt() + 10.0) as u32
            }
        };
        let workload = Workload {
            keys,
            // Record j asks for key j, so that the server knows which record a request comes from.
            distribution: KeyDistribution::Sequential,
            shape: KeyShape::Pattern("k{index}".to_owned()),
            size: IntegerRange { low: self.value_bytes, high: self.value_bytes }.into(),
            mix: parse_mix("get").expect("a mix"),
            order: self.order(),
            run: 1,
            prefill: 0.0,
            ..Workload::default()
        };
        let bytes = generate(&workload, &self.schedule, self.seed).expect("a tape");
        Tape::from_bytes(bytes).expect("our own tape")
    }

    /// Gets of one key after the other, in groups.
    fn order(&self) -> Order {
        if self.group == 1 {
            return Order::Mixed;
        }
        let steps: Vec<_> = (0..self.group).map(|k| format!("get@{k}")).collect();
        let steps = parse_sequence(&steps.join(" ")).expect("a sequence");
        Order::Sequence { steps, key_step: self.group }
    }

    /// Play the trial with the native client and its event loop.
    pub fn play(&self, script: Script) -> TrialResult {
        self.play_lanes(vec![script])
    }

    /// Play the trial in several lanes, each against its own server, and add the results.
    pub fn play_lanes(&self, scripts: Vec<Script>) -> TrialResult {
        let tape = self.tape();
        let lanes = scripts.len() as u64;
        let mut ground_truth = GroundTruth::new(self.timeout_ns);
        let mut players = Vec::new();
        for (number, script) in (0..).zip(scripts) {
            let lane = Lane::new(number, lanes, tape.op_count(), tape.group());
            let (player, of_lane) = self.play_lane(&tape, lane, script);
            players.push(player);
            ground_truth.add(of_lane);
        }
        TrialResult {
            result: RunResult::of(&players, &tape),
            ground_truth,
            open_loop: tape.is_open_loop(),
            thinks: tape.has_think_times(),
            window_ns: self.window_ns,
        }
    }

    fn play_lane<'tape>(
        &self,
        tape: &'tape Tape,
        lane: Option<Lane>,
        script: Script,
    ) -> (Player<'tape>, GroundTruth) {
        let network =
            SimulatedNetwork::new(tape, self.connections, script, self.pause, self.timeout_ns)
                .with_io_call_time(self.io_call_ns);
        let clock = network.clock();
        let mut connections = ThreadConnections::new(network);
        let work_slice = WorkSlice::Lane { lane, ops: self.ops };
        let mut play = |length_ns: u64| {
            let start_ns = clock.now_ns();
            connections.network_mut().begin_window(start_ns);
            let end_ns = start_ns + length_ns;
            let section_ns = Some(length_ns / SECTION_COUNT as u64);
            let window = Window { start_ns, end_ns, timeout_ns: self.timeout_ns, section_ns };
            let player = Player::new(tape, work_slice, window, self.connections, self.depth)
                .with_refill(self.refill);
            let drain_end_ns = end_ns + 2 * self.timeout_ns;
            EventLoop::new(
                player,
                clock.clone(),
                &mut connections,
                &SharedState::default(),
                drain_end_ns,
            )
            .run()
            .expect("a virtual network does not fail")
        };
        if self.warmup_ns > 0 {
            play(self.warmup_ns);
        }
        let player = play(self.window_ns);
        (player, connections.into_network().ground_truth)
    }
}

impl TrialResult {
    /// The metrics of gets: the only kind of operation.
    pub fn gets(&self) -> &KindMetrics {
        self.result.metrics.kinds().next().expect("gets").1
    }

    /// A percentile of the response time, as the client reports it.
    pub fn response_ns(&self, percent: f64) -> u64 {
        percentile_ns(&self.gets().response, percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::after;

    /// Far too much load for one connection: operations in the queue are given up early enough that no
    /// operation in flight is cut off and counted as a timeout.
    #[test]
    fn operations_in_flight_have_a_full_timeout() {
        let overload = Trial::uniform(1_000.0, 1).with_connections(1, 1).timeout(SECOND);
        let trial = overload.play(after(900 * MS));
        assert_eq!(trial.gets().errors, [0; 5]);
        assert_eq!((trial.gets().ok, trial.result.metrics.unsent), (3, 997));
    }
}
