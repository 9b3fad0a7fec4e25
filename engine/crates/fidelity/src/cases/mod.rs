//! The cases, in the order of the printed table.

mod delays;
mod failures;
mod groups;
mod queues;
mod recorder;
mod schedules;
mod stalls;

use crate::check::CaseResult;

/// One case: `play` plays it and checks the results.
pub struct Case {
    pub id: &'static str,
    pub title: &'static str,
    pub play: fn() -> CaseResult,
}

const fn case(id: &'static str, title: &'static str, play: fn() -> CaseResult) -> Case {
    Case { id, title, play }
}

pub const CASES: [Case; 44] = [
    case("F1", "constant 1 ms, 10,000/s", delays::constant),
    case("F2", "1 ms, each 100th 10 ms: which rank is p99?", delays::bimodal),
    case("F3", "exponential delays of 1 ms, Poisson arrivals", delays::exponential),
    case("F4", "lognormal delays, median 1 ms, σ = 1", delays::lognormal),
    case("F5", "a stall of 100 ms each second", stalls::each_second),
    case("F5 Poisson", "the same, Poisson arrivals", stalls::each_second_poisson),
    case("F5b", "the same, then served one by one", stalls::drained_one_by_one),
    case("F5c", "the same in a closed loop of one", stalls::in_a_closed_loop),
    case("F5d", "the same with room for 64 operations", stalls::with_little_room),
    case("F6", "one stall of 2 s in 60 s", stalls::once),
    case("F7", "100 s good, 100 s stalled", stalls::half_of_the_time),
    case("F8", "1 % of 100 ms, independent: nothing to correct", stalls::independent),
    case("F9", "M/M/1, ρ = 0.5", queues::mm1),
    case("F10 ρ=0.5", "M/D/1, ρ = 0.5", queues::md1_half),
    case("F10 ρ=0.8", "M/D/1, ρ = 0.8", queues::md1_busy),
    case("F11", "D/D/1: equal gaps, no operation waits", queues::dd1),
    case("F12", "10,000/s due, 9,000/s served", queues::overload),
    case("F13 one", "each 1,000th takes 10 ms, 1 connection", queues::head_of_line),
    case("F13 ten", "the same over 10 connections", queues::head_of_line_of_ten),
    case("F14", "16 callers, one server of 100 µs", queues::closed_loop),
    case("F14 think", "the same callers think 9 ms, replies take 1 ms", queues::with_think_time),
    case("F15", "a stall that the window's end falls into", failures::end_in_a_stall),
    case("F16", "1 % is never answered", failures::timeouts),
    case(
        "F16 depth",
        "a stall, several in flight: a timeout cuts off",
        failures::timeouts_of_several,
    ),
    case("F17", "10 ms for 5 s, then 1 ms: a warm-up is not counted", delays::warmup),
    case("F17 counted", "the same with the warm-up in the window", delays::warmup_counted),
    case("F17b", "1 ms, and from half time 2 ms", delays::regimes),
    case("F17 drift", "1 ms that becomes 2 ms little by little", delays::drift),
    case("F18 Zipf", "keys: Zipf 0.99 over a million", schedules::zipf),
    case("F18 uniform", "keys: uniform", schedules::uniform_keys),
    case("F19", "arrivals: Poisson and equal gaps", schedules::arrivals),
    case("F20", "the client itself stands still 100 ms each second", failures::frozen),
    case("F20 bound", "the same with room for 64 operations", failures::frozen_without_room),
    case("F20 replies", "40 replies at once, each read and write takes 10 µs", stalls::at_once),
    case("F22", "a value of 1 MB in two halves", failures::in_halves),
    case("F23", "constants of 100 ns to 100 s, 0, and 150 s", recorder::sweep),
    case("F24", "two recorders, 1 ms and 10 ms, merged", recorder::merged),
    case("F28", "the wall clock is set by 1 s, forth and back", delays::wall_clock),
    case("F29", "1 in 10,000 replies is wrong", failures::wrong_replies),
    case("F31", "groups of four: 3, 1, 2 and 6 ms; each tenth one 18 ms more", groups::of_four),
    case("F31 depth", "groups of eight, four in flight: twice 1 ms", groups::in_flight),
    case("F31 timeout", "groups of four, 1 % is never answered", groups::with_timeouts),
    case("F32", "four in flight, refilled when all are answered", groups::refilled_together),
    case("F32 each", "four in flight, refilled one by one", groups::refilled_one_by_one),
];
