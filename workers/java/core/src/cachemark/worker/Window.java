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
    final long timeoutNs;
    /** How long it is to last; 0 where it ends by a number of operations. */
    final long durationNs;
    /** Nothing is begun after this instant; a stop moves it to the past. */
    volatile long endNs;
    private volatile boolean stopped;

    Window(long startUnixNs, Long durationMs, long timeoutNs) {
        Instant now = Instant.now();
        long nowUnixNs = now.getEpochSecond() * 1_000_000_000 + now.getNano();
        startNs = System.nanoTime() + Math.max(START_AHEAD_NS, startUnixNs - nowUnixNs);
        durationNs = durationMs == null ? 0 : durationMs * 1_000_000;
        endNs = durationMs == null ? Long.MAX_VALUE : startNs + durationNs;
        this.timeoutNs = timeoutNs;
    }

    synchronized void stop() {
        endNs = Math.min(endNs, System.nanoTime());
        stopped = true;
    }

    /** What was due in an open loop's window and is not sent by this instant never is. */
    long drainNs() {
        return stopped || endNs == Long.MAX_VALUE ? endNs : endNs + 2 * timeoutNs;
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
