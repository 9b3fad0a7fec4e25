//! Slices: threads that are ready play short parts of the tape whenever they are asked to, and wait in between.
//! Nothing is allocated between slices.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::control::RunControl;
use super::cpu::cpu_times;
use crate::io_traits::Clock;
use crate::player::SliceResult;
use crate::record::Window;
use crate::transport::Monotonic;

/// How often the driver is asked while a slice is played.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// The limits of a slice.
#[derive(Clone, Copy, Debug)]
pub struct SliceLimits {
    pub start_in_ns: u64,
    pub length_ns: u64,
    pub lead_in_ns: u64,
}

/// Says which slices are played, and takes their results.
pub trait SliceDriver {
    /// The next slice, after the result of the one before it; `None` ends the slices.
    fn next(&mut self, played: Option<SliceResult>) -> Option<SliceLimits>;

    /// Called from time to time while a slice is played.
    fn poll(&mut self, control: &RunControl);
}

/// A player of one thread's slices.
pub(crate) trait SlicePlayer: Send {
    /// The calling thread plays the slices from now on.
    fn begin(&mut self) -> io::Result<()>;

    fn play(&mut self, window: Window, lead_in_ns: u64) -> io::Result<SliceResult>;

    /// The calling thread plays no more slices.
    fn end(&mut self) -> io::Result<()>;
}

/// The sums over all slices.
#[derive(Default)]
pub(crate) struct SliceTotals {
    pub elapsed_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
}

/// The turn of all threads, and its results so far.
#[derive(Default)]
struct Turn {
    number: u64,
    window: Option<(Window, u64)>,
    playing: usize,
    result: SliceResult,
    error: Option<io::Error>,
    over: bool,
}

#[derive(Default)]
struct Turns {
    turn: Mutex<Turn>,
    begins: Condvar,
    ends: Condvar,
}

/// Play slices on a thread for each player until the driver ends them.
pub(crate) fn play_slices(
    players: Vec<&mut dyn SlicePlayer>,
    timeout_ns: u64,
    control: &RunControl,
    driver: &mut dyn SliceDriver,
) -> io::Result<SliceTotals> {
    let turns = Turns::default();
    // Each thread says once that it is ready.
    turns.lock().playing = players.len();
    thread::scope(|scope| {
        let count = players.len();
        for player in players {
            let turns = &turns;
            scope.spawn(move || turns.serve(player));
        }
        let totals = turns.drive(count, timeout_ns, control, driver);
        turns.lock().over = true;
        turns.begins.notify_all();
        totals
    })
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hand out the slices of the driver, one after the other.
    fn drive(
        &self,
        threads: usize,
        timeout_ns: u64,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<SliceTotals> {
        let mut totals = SliceTotals::default();
        self.wait_for_end(control, driver)?;
        let mut played = None;
        while let Some(limits) = driver.next(played) {
            let before = cpu_times();
            let result = self.play(threads, limits, timeout_ns, control, driver)?;
            let after = cpu_times();
            totals.cpu_user_ns += after.0 - before.0;
            totals.cpu_system_ns += after.1 - before.1;
            totals.elapsed_ns += result.mean_elapsed_ns();
            played = Some(result);
        }
        Ok(totals)
    }

    fn play(
        &self,
        threads: usize,
        limits: SliceLimits,
        timeout_ns: u64,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<SliceResult> {
        let start_ns = Monotonic.now_ns() + limits.start_in_ns;
        let end_ns = start_ns + limits.length_ns;
        let window = Window { start_ns, end_ns, timeout_ns, section_ns: None };
        control.clear_stop();
        let mut turn = self.lock();
        turn.number += 1;
        turn.window = Some((window, limits.lead_in_ns));
        turn.playing = threads;
        turn.result = SliceResult::default();
        drop(turn);
        self.begins.notify_all();
        self.wait_for_end(control, driver)
    }

    /// Wait until no thread plays any more.
    fn wait_for_end(
        &self,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<SliceResult> {
        let mut turn = self.lock();
        while turn.playing > 0 {
            let waited = self.ends.wait_timeout(turn, POLL_EVERY);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            turn = guard;
            if waited.timed_out() {
                driver.poll(control);
            }
        }
        turn.error.take().map_or(Ok(turn.result), Err)
    }

    /// The thread of a player.
    fn serve(&self, player: &mut dyn SlicePlayer) {
        let mut ended = player.begin().map(|()| SliceResult::default());
        let mut number = 0;
        while let Some((window, lead_in_ns)) = self.end_turn(ended, &mut number) {
            ended = player.play(window, lead_in_ns);
        }
        // Its attachment is not used any more; an error changes no result.
        let _ = player.end();
    }

    /// Hand over a result and wait for the next turn; `None` after the last one.
    fn end_turn(&self, ended: io::Result<SliceResult>, number: &mut u64) -> Option<(Window, u64)> {
        let mut turn = self.lock();
        match ended {
            Ok(result) => turn.result.add(&result),
            Err(error) => turn.error = Some(error),
        }
        turn.playing -= 1;
        if turn.playing == 0 {
            self.ends.notify_one();
        }
        while turn.number == *number && !turn.over {
            turn = self.begins.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *number = turn.number;
        turn.window.filter(|_| !turn.over)
    }
}
