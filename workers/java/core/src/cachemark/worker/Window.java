package cachemark.worker;

import java.time.Instant;
import java.util.concurrent.locks.LockSupport;

/** The begin and the end of a run; its lanes share it. */
final class Window {
    /** The time that lanes need to be ready before a window begins; their threads start slowly. */
    private static final long START_AHEAD_NS = 20_000_000;
    /** A sleep ends some tens of µs late, so the last part of a wait polls the clock. */
    private static final long SPIN_NS = 100_000;
    /** A wait checks at this interval whether the run was stopped. */
    private static final long LOOK_NS = 20_000_000;

    final long startNs;
    /** The instant at which the tape's time is 0. */
    final long tapeStartNs;

    final long timeoutNs;
    /** Its length; 0 if it ends by a number of operations. */
    final long durationNs;
    /** Lanes begin nothing after this instant; a stop moves it to the past. */
    volatile long endNs;

    private volatile boolean stopped;

    private Window(long startNs, long tapeNs, long durationNs, long endNs, long timeoutNs) {
        this.startNs = startNs;
        tapeStartNs = startNs - tapeNs;
        this.durationNs = durationNs;
        this.endNs = endNs;
        this.timeoutNs = timeoutNs;
    }

    /** The window of a run. */
    static Window ofRun(long startUnixNs, Long durationMs, long timeoutNs) {
        long startNs = instant(startUnixNs, START_AHEAD_NS);
        long durationNs = durationMs == null ? 0 : durationMs * 1_000_000;
        long endNs = durationMs == null ? Long.MAX_VALUE : startNs + durationNs;
        return new Window(startNs, 0, durationNs, endNs, timeoutNs);
    }

    /** The window of a slice; the tape's time is `tapeNs` at its start. */
    static Window ofSlice(long startUnixNs, long tapeNs, long durationNs, long timeoutNs) {
        long startNs = instant(startUnixNs, 0);
        return new Window(startNs, tapeNs, durationNs, startNs + durationNs, timeoutNs);
    }

    /** An instant of the wall clock, but not before a minimal time from now. */
    private static long instant(long unixNs, long aheadNs) {
        Instant now = Instant.now();
        long nowUnixNs = now.getEpochSecond() * 1_000_000_000 + now.getNano();
        return System.nanoTime() + Math.max(aheadNs, unixNs - nowUnixNs);
    }

    synchronized void stop() {
        endNs = Math.min(endNs, System.nanoTime());
        stopped = true;
    }

    /** After this instant, an open loop sends no more operations of its window. */
    long drainNs() {
        return stopped || endNs == Long.MAX_VALUE ? endNs : endNs + 2 * timeoutNs;
    }

    /** The instant by which the last call has ended, unless it never returns. */
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
