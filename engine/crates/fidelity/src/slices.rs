//! Slices of the native client in simulated time: which operations are counted, and for how long.

use cachemark_load::{
    Clock, EventLoop, Metrics, Player, SharedState, SliceResult, ThreadConnections, Window,
    WorkSlice,
};
use cachemark_tape::{Lane, Tape};

use crate::script::{Script, after, stalls_once};
use crate::simulated_network::SimulatedNetwork;
use crate::trial::{MS, SECOND, Trial, US};

/// A slice: the pause before it, its length and its lead-in.
type Slice = (u64, u64, u64);

/// Play slices on a simulated network; their results, and the metrics of all.
fn play(trial: &Trial, script: Script, slices: &[Slice]) -> (Vec<SliceResult>, Metrics, Metrics) {
    play_late(trial, script, slices, 0)
}

/// The same by a thread that gets no CPU in the first part of each slice.
fn play_late(
    trial: &Trial,
    script: Script,
    slices: &[Slice],
    late_ns: u64,
) -> (Vec<SliceResult>, Metrics, Metrics) {
    let tape: Tape = trial.tape();
    let (connections, depth, timeout_ns) = trial.load();
    let network = SimulatedNetwork::new(&tape, connections, script, None, timeout_ns);
    let clock = network.clock();
    let mut states = ThreadConnections::new(network);
    let lane = Lane::new(0, 1, tape.op_count(), tape.group());
    let start_ns = clock.now_ns();
    let window = Window { start_ns, end_ns: start_ns, timeout_ns, section_ns: None };
    let work_slice = WorkSlice::Lane { lane, ops: u64::MAX };
    let mut player: Player<'_> = Player::new(&tape, work_slice, window, connections, depth);
    player.prepare_slices();
    let mut results = Vec::new();
    for (pause_ns, length_ns, lead_in_ns) in slices {
        clock.pause(*pause_ns);
        let start_ns = clock.now_ns();
        let window =
            Window { start_ns, end_ns: start_ns + length_ns, timeout_ns, section_ns: None };
        player.begin_slice(window, *lead_in_ns);
        clock.pause(late_ns);
        let shared = SharedState::default();
        let drain_end_ns = window.end_ns + 2 * timeout_ns;
        player = EventLoop::new(player, clock.clone(), &mut states, &shared, drain_end_ns)
            .run_slice()
            .expect("a virtual network does not fail");
        results.push(player.end_slice());
    }
    let (counted, lead_in) = player.into_slice_metrics();
    (results, counted, lead_in)
}

fn closed(connections: usize, depth: usize) -> Trial {
    Trial::closed(1).with_connections(connections, depth).timeout(SECOND)
}

fn result(ops: u64, lead_in_ops: u64, elapsed_ns: u64, callers: u64) -> SliceResult {
    SliceResult { ops, lead_in_ops, elapsed_ns, callers, ..SliceResult::default() }
}

fn with_half(half_ops: u64, half_ns: u64, result: SliceResult) -> SliceResult {
    SliceResult { half_ops, half_ns, ..result }
}

/// Replies come after each ms. The reply at 3 ms ends the lead-in of 2.5 ms; the request of 10 ms is the last.
#[test]
fn counting_begins_with_a_completion_and_ends_with_one() {
    let slice = (0, 10 * MS + 500 * US, 2 * MS + 500 * US);
    let (results, counted, lead_in) = play(&closed(1, 1), after(MS), &[slice, slice]);
    // The middle is 6.5 ms: the first half ends with the reply at 7 ms.
    assert_eq!(results, [with_half(4, 4 * MS, result(8, 3, 8 * MS, 1)); 2]);
    let (_, gets) = counted.kinds().next().expect("gets");
    assert_eq!((gets.attempts, gets.ok, counted_times(&counted)), (16, 16, 16));
    let (_, gets) = lead_in.kinds().next().expect("gets");
    assert_eq!((gets.attempts, gets.ok), (6, 6));
}

/// How many response times were recorded.
fn counted_times(metrics: &Metrics) -> u64 {
    let mut sum = Metrics::empty(0);
    sum.add(metrics);
    sum.kinds().map(|(_, kind)| kind.response.len()).sum()
}

#[test]
fn a_completion_at_the_lead_ins_end_belongs_to_it() {
    let (results, ..) = play(&closed(1, 1), after(MS), &[(0, 10 * MS, 3 * MS)]);
    assert_eq!(results, [with_half(4, 4 * MS, result(7, 3, 7 * MS, 1))]);
}

#[test]
fn without_a_lead_in_counting_begins_with_the_slice() {
    let slices = [(0, 10 * MS + 500 * US, 0), (0, 0, 0), (0, 500 * US, 0)];
    let (results, ..) = play(&closed(1, 1), after(MS), &slices);
    let expected = [
        with_half(6, 6 * MS, result(11, 0, 11 * MS, 1)),
        result(0, 0, 0, 1),
        with_half(1, MS, result(1, 0, MS, 1)),
    ];
    assert_eq!(results, expected);
}

#[test]
fn a_slice_of_lead_in_counts_nothing() {
    let slices = [(0, 10 * MS, 10 * MS)];
    let (results, counted, _) = play(&closed(2, 4), after(MS), &slices);
    assert_eq!(results, [result(0, 2 * 4 * 10, 0, 2)]);
    assert_eq!(counted.kinds().count(), 0);
}

/// Replies come after each ms. All that is played after 5 ms is counted, from the end of the lead-in on.
#[test]
fn a_thread_without_cpu_counts_from_the_lead_ins_end() {
    let slice = (0, 10 * MS, 2 * MS);
    let (results, ..) = play_late(&closed(2, 1), after(MS), &[slice, slice], 5 * MS);
    // The middle is 6 ms, and so is the first reply.
    assert_eq!(results, [with_half(2, 2 * 4 * MS, result(2 * 5, 0, 2 * 8 * MS, 2)); 2]);
}

#[test]
fn a_thread_without_cpu_counts_the_length_of_its_slice() {
    let slices = [(0, 10 * MS, 2 * MS), (0, 10 * MS, 10 * MS)];
    let (results, ..) = play_late(&closed(2, 1), after(MS), &slices, 11 * MS);
    let nothing = with_half(0, 2 * 4 * MS, result(0, 0, 2 * 8 * MS, 2));
    assert_eq!(results, [nothing, result(0, 0, 0, 2)]);
}

/// All replies of a round come at the same time: those at 3 ms all belong to the lead-in.
#[test]
fn each_connection_is_a_caller() {
    let slice = (0, 10 * MS + 500 * US, 2 * MS + 500 * US);
    let (results, ..) = play(&closed(2, 4), after(MS), &[slice]);
    let expected = result(2 * 4 * 8, 2 * 4 * 3, 2 * 8 * MS, 2);
    assert_eq!(results, [with_half(2 * 4 * 4, 2 * 4 * MS, expected)]);
    assert_eq!(results[0].mean_elapsed_ns(), 8 * MS);
}

/// The server stalls from 5 to 50 ms: the slice of 10 ms lasts until the reply, which is counted once.
#[test]
fn a_stall_is_counted_as_long_as_it_lasts() {
    let slice = (0, 10 * MS, MS);
    let script = stalls_once(5 * MS, 50 * MS, MS);
    let (results, ..) = play(&closed(1, 1), script, &[slice, slice]);
    let stalled = with_half(5, 50 * MS, result(5, 1, 50 * MS, 1));
    assert_eq!(results, [stalled, with_half(5, 5 * MS, result(9, 1, 9 * MS, 1))]);
}

/// Operations without an answer fail in the slice in which they were sent.
#[test]
fn time_outs_of_a_slice_are_its_errors() {
    let script: Script = Box::new(|_| crate::script::ScriptedReply::Never);
    let (results, counted, _) = play(&closed(1, 1), script, &[(0, 10 * MS, 0)]);
    let failed = SliceResult { errors: 1, ..result(0, 0, SECOND, 1) };
    assert_eq!(results, [with_half(1, SECOND, failed)]);
    assert_eq!(counted_times(&counted), 1);
}

/// 1000/s: of a slice of 100 ms the first 25 are not counted. Pauses of half a second move no intended start.
#[test]
fn the_tape_of_an_open_loop_stands_still_in_pauses() {
    let trial = Trial::uniform(1_000.0, 1).with_connections(4, 1).timeout(SECOND);
    let slices = [(500 * MS, 100 * MS, 25 * MS); 25];
    let (results, counted, lead_in) = play(&trial, after(US), &slices);
    let (ops, left): (u64, u64) =
        results.iter().fold((0, 0), |(ops, left), one| (ops + one.ops, left + one.lead_in_ops));
    // The first operation is due at once, or after a gap.
    assert!(ops.abs_diff(25 * 75) <= 1 && left.abs_diff(25 * 25) <= 1, "{ops} and {left}");
    assert!(results.iter().all(|one| one.mean_elapsed_ns() == 75 * MS));
    assert_eq!((counted.unsent, counted.send_lag.len()), (0, ops));
    assert!(counted.send_lag.max() < MS, "a lag of {} ns", counted.send_lag.max());
    assert_eq!(lead_in.kinds().map(|(_, kind)| kind.attempts).sum::<u64>(), left);
}

/// Callers that think at the end of a slice go on with it in the next one.
#[test]
fn think_times_stand_still_in_pauses() {
    let trial = Trial::with_think_time(4 * MS, 1).with_connections(1, 1).timeout(SECOND);
    let slice = (500 * MS, 10 * MS, 0);
    let (results, counted, _) = play(&trial, after(MS), &[slice; 20]);
    // 5 ms for each operation. What is in flight at the end of a slice takes up to 1 ms of the pause.
    let ops: u64 = results.iter().map(|one| one.ops).sum();
    assert!((40..=44).contains(&ops), "{ops}");
    assert!(counted.send_lag.max() < MS, "a lag of {} ns", counted.send_lag.max());
}
