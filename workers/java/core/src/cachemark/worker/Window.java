package cachemark.worker;

import java.time.Instant;
import java.util.concurrent.locks.LockSupport;

/** When a run begins and what ends it; shared by its lanes. */
final class Window {
    /** Lanes need a moment to be there before a window begins; their threads' first steps are slow. */
    private static final long START_AHEAD_NS = 20_000_000;
    /** A sleep is late by some tens of µs; the rest of a wait is spent asking the clock. */
    private static final long SPIN_NS = 100_000;
    /** A wait looks this often whether it is still wanted. */
    private static final long LOOK_NS = 20_000_000;

    final long startNs;
    /** When the tape's time was 0, or would have been. */
    final long tapeStartNs;

    final long timeoutNs;
    /** How long it is to last; 0 where it ends by a number of operations. */
    final long durationNs;
    /** Nothing is begun after this instant; a stop moves it to the past. */
    volatile long endNs;

    private volatile boolean stopped;

    private Window(long startNs, long tapeNs, long durationNs, long endNs, long timeoutNs) {
        this.startNs = startNs;
        tapeStartNs = startNs - tapeNs;
        this.durationNs = durationNs;
        this.endNs = endNs;
        this.timeoutNs = timeoutNs;
    }

    /** That of a run. */
    static Window ofRun(long startUnixNs, Long durationMs, long timeoutNs) {
        long startNs = instant(startUnixNs, START_AHEAD_NS);
        long durationNs = durationMs == null ? 0 : durationMs * 1_000_000;
        long endNs = durationMs == null ? Long.MAX_VALUE : startNs + durationNs;
        return new Window(startNs, 0, durationNs, endNs, timeoutNs);
    }

    /** That of a slice, where the tape's time is `tapeNs` at its start. */
    static Window ofSlice(long startUnixNs, long tapeNs, long durationNs, long timeoutNs) {
        long startNs = instant(startUnixNs, 0);
        return new Window(startNs, tapeNs, durationNs, startNs + durationNs, timeoutNs);
    }

    /** An instant of the wall clock, but not sooner than so long from now. */
    private static long instant(long unixNs, long aheadNs) {
        Instant now = Instant.now();
        long nowUnixNs = now.getEpochSecond() * 1_000_000_000 + now.getNano();
        return System.nanoTime() + Math.max(aheadNs, unixNs - nowUnixNs);
    }

    synchronized void stop() {
        endNs = Math.min(endNs, System.nanoTime());
        stopped = true;
    }

    /** After this instant, the rest of an open loop's window is never sent. */
    long drainNs() {
        return stopped || endNs == Long.MAX_VALUE ? endNs : endNs + 2 * timeoutNs;
    }

    /** When the last call has surely ended, unless it never does. */
    long lastEndNs() {
        return endNs == Long.MAX_VALUE ? Long.MAX_VALUE >> 1 : drainNs() + 2 * timeoutNs;
    }

    /** Wait for an instant. False if the run was stopped before it came. */
    boolean await(long instantNs) {
        while (true) {
            long leftNs = instantNs - System.nanoTime();
            if (leftNs <= 0) {
                return true;
            }
            if (stopped) {
                return false;
            }
            if (leftNs > SPIN_NS) {
                LockSupport.parkNanos(Math.min(leftNs - SPIN_NS, LOOK_NS));
            } else {
                Thread.yield(); // to another lane, which may have a reply
            }
        }
    }
}
