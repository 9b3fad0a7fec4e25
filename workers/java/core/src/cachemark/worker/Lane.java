package cachemark.worker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One caller in one run: the measured loops. Between two readings of the clock there is only the
 * library's call; nothing here allocates.
 */
final class Lane {
    private static final VarHandle OK = handle("okSoFar");
    private static final VarHandle FAILED = handle("failedSoFar");

    final Session session;
    /** One for each section of the window, or one for all of it. */
    final Recorder[] recorders;

    final Timeline timeline;
    private Recorder recorder;
    private final Script script;
    private Window window;
    /** The most operations that it may begin; below 0: no limit. */
    private long left;

    long sentNs;
    long endedNs;
    long queued;
    long unsent;
    int peak;
    int barriers;
    /** Null unless the run asked for a call log. */
    CallLog calls;
    /** The CPU time of its thread, with its wait for the window. */
    long cpuNs;
    /** Other threads read these while it plays. */
    private volatile long okSoFar;

    private volatile long failedSoFar;
    private long ok;
    private long failed;
    final SliceCount slice;

    Lane(Session session, Script script, Recorder[] parts, Timeline line, Window window, long ops, SliceCount slice) {
        this.session = session;
        this.slice = slice;
        this.script = script;
        recorders = parts;
        timeline = line;
        recorder = parts[0];
        this.window = window;
        left = ops;
        sentNs = endedNs = window.startNs;
    }

    /** A slice comes next: the script goes on where it is. */
    void beginSlice(Window next, Recorder leadIn, long countFromNs, long middleNs) {
        window = next;
        left = -1;
        ok = 0;
        failed = 0;
        recorder = leadIn;
        slice.beginLeadIn(countFromNs, middleNs);
    }

    /** Add the slice's result. */
    void addTo(Slices.Sums sums) {
        slice.addTo(sums, ok, failed);
        if (!script.isEmpty()) {
            sums.callers++;
            slice.addTimes(sums, ok + failed > 0 ? endedNs : 0, window.endNs);
        }
    }

    private static VarHandle handle(String field) {
        try {
            return MethodHandles.lookup().findVarHandle(Lane.class, field, long.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    long okSoFar() {
        return okSoFar;
    }

    long failedSoFar() {
        return failedSoFar;
    }

    /** Note a call; returns its result, which is a timeout if the call lasted too long. */
    private long note(Op op, long outcome, long began, long now, long lagNs) {
        long serviceNs = now - began;
        long came = serviceNs >= window.timeoutNs ? Verify.TIMEOUT : outcome;
        if (timeline.ended(now)) {
            int section = timeline.advance(now);
            recorder = recorders[Math.min(section, recorders.length - 1)];
        }
        recorder.note(op, came, serviceNs, lagNs);
        slice.groups.note(came >= 0 && slice.counting, began, now);
        if (came >= 0) {
            timeline.note(serviceNs + lagNs);
            OK.setOpaque(this, ++ok);
        } else {
            FAILED.setOpaque(this, ++failed);
            op.tape.noteFailure(came);
        }
        return came;
    }

    /** In a closed loop after each completion and before the first call; in an open loop at each due call. */
    private void lookAtParts(long now) {
        if (now >= slice.nextPartNs && !script.isEmpty()) {
            recorder = recorders[0];
            slice.endPart(now, ok, failed);
        }
    }

    /** Call after call until the window ends. */
    void closedLoop() {
        long now = System.nanoTime();
        lookAtParts(now);
        while (left-- != 0 && now < window.endNs) {
            Op op = script.next();
            if (op == null) {
                break;
            }
            peak = 1;
            Object answer = null;
            Throwable failure = null;
            long began = System.nanoTime();
            try {
                answer = session.call(op);
                now = System.nanoTime();
            } catch (Throwable thrown) {
                now = System.nanoTime();
                failure = thrown;
            }
            long outcome = Verify.of(answer, failure, op, session);
            note(op, outcome, began, now, 0);
            lookAtParts(now);
        }
        sentNs = endedNs = now;
    }

    /**
     * Up to `depth` operations outstanding. A caller with futures waits for the oldest and then also
     * takes other finished ones, or it waits for all. It notes a reply when it takes it.
     */
    void pipelined(int depth, boolean refillAll) {
        Op[] ops = new Op[depth];
        Future<?>[] futures = new Future<?>[depth];
        long[] begans = new long[depth];
        int oldest = 0;
        int count = 0;
        lookAtParts(System.nanoTime());
        while (true) {
            int before = count;
            while (count < depth && left != 0) {
                Op op = script.next();
                long began = System.nanoTime();
                if (op == null || began >= window.endNs) {
                    if (op != null) {
                        script.unread();
                    }
                    left = 0;
                    break;
                }
                left--;
                int slot = oldest + count < depth ? oldest + count : oldest + count - depth;
                try {
                    futures[slot] = session.begin(op);
                } catch (Throwable thrown) {
                    sentNs = endedNs = System.nanoTime();
                    slice.groups.notedBefore(count);
                    note(op, Verify.of(null, thrown, op, session), began, endedNs, 0);
                    lookAtParts(endedNs);
                    continue;
                }
                ops[slot] = op;
                begans[slot] = began;
                count++;
            }
            if (count > before) {
                sentNs = System.nanoTime();
                peak = Math.max(peak, count);
            }
            if (count == 0) {
                return;
            }
            do {
                take(ops[oldest], futures[oldest], begans[oldest]);
                futures[oldest] = null;
                oldest = oldest + 1 < depth ? oldest + 1 : 0;
                count--;
            } while (count > 0 && (refillAll || futures[oldest].isDone()));
            lookAtParts(endedNs); // replies that were there together are one completion
        }
    }

    private void take(Op op, Future<?> future, long began) {
        Object answer = null;
        Throwable failure = null;
        long readNs = Math.max(sentNs, endedNs); // the clock, when it was read last
        long leftNs = Math.max(0, window.timeoutNs - (readNs - began));
        try {
            answer = session.end(op, future, leftNs);
            endedNs = System.nanoTime();
        } catch (Throwable thrown) {
            endedNs = System.nanoTime();
            failure = thrown;
        }
        note(op, Verify.of(answer, failure, op, session), began, endedNs, 0);
    }

    /** Each call when it is due, or as soon after that as this caller is free. */
    void openLoop(AtomicInteger inFlight) {
        long now = 0;
        while (left-- != 0) {
            Op op = script.next();
            if (op == null) {
                return;
            }
            long due = window.tapeStartNs + script.dueNs();
            if (due >= window.endNs || !window.await(due) || System.nanoTime() >= window.drainNs()) {
                noteUnsent(op, due);
                return;
            }
            lookAtParts(due);
            if (now > due && slice.counting) {
                queued++; // the call before took until after this one was due
            }
            peak = Math.max(peak, inFlight.incrementAndGet());
            Object answer = null;
            Throwable failure = null;
            long began = System.nanoTime();
            try {
                answer = session.call(op);
                now = System.nanoTime();
            } catch (Throwable thrown) {
                now = System.nanoTime();
                failure = thrown;
            }
            long outcome = Verify.of(answer, failure, op, session);
            inFlight.decrementAndGet();
            long came = note(op, outcome, began, now, began - due);
            if (calls != null) {
                calls.note(op, script.place(), answer, came, began, now);
            }
            sentNs = endedNs = now;
        }
    }

    /** Note operations that were due in the window and that will not be sent: they waited until now. */
    private void noteUnsent(Op op, long due) {
        long now = System.nanoTime();
        long until = Math.min(window.endNs, now);
        while (op != null && due < until) {
            lookAtParts(due);
            unsent += slice.counting ? 1 : 0;
            recorder.unsent(op, now - due);
            op = left-- != 0 ? script.next() : null;
            due = op == null ? 0 : window.tapeStartNs + script.dueNs();
        }
        if (op != null) {
            script.unread(); // the next slice begins with it
        }
    }

    /** Send commands with a reply after operations without one. */
    void endQuiet() {
        if (ok + failed == 0) {
            return;
        }
        try {
            barriers += session.barrier();
            endedNs = System.nanoTime();
        } catch (Exception error) { // the server is gone, with the last operations
            System.err.println("no answer after the last operations without one: " + error);
        }
    }
}
