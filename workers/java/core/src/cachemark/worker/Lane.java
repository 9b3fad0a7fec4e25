package cachemark.worker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One caller in one run: the loops that are measured. Between two readings of the clock there is
 * the library and nothing else; nothing here allocates.
 */
final class Lane {
    private static final VarHandle OK = handle("okSoFar");
    private static final VarHandle FAILED = handle("failedSoFar");

    final Session session;
    /** One for each section of the window, or one for all of it. */
    final Tally[] tallies;
    final Course course;
    private Tally tally;
    private final Script script;
    private final Window window;
    /** Operations that it may begin; less than 0 is no limit. */
    private long left;

    long sentNs;
    long endedNs;
    long bound;
    long unsent;
    int peak;
    int barriers;
    /** What its thread took, its wait for the window too. */
    long cpuNs;
    /** Read by others while it plays. */
    private volatile long okSoFar;
    private volatile long failedSoFar;
    private long ok;
    private long failed;

    Lane(Session session, Script script, Tally[] tallies, Course course, Window window,
            long limit) {
        this.session = session;
        this.script = script;
        this.tallies = tallies;
        this.course = course;
        tally = tallies[0];
        this.window = window;
        left = limit;
        sentNs = endedNs = window.startNs;
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

    private void note(Op op, long outcome, long began, long now, long lagNs) {
        long serviceNs = now - began;
        boolean late = serviceNs >= window.timeoutNs;
        long came = late ? Outcome.TIMEOUT : outcome;
        if (course.ended(now)) {
            int section = course.advance(now);
            tally = tallies[Math.min(section, tallies.length - 1)];
        }
        tally.note(op, came, serviceNs, lagNs);
        if (came >= 0) {
            course.note(serviceNs + lagNs);
            OK.setOpaque(this, ++ok);
        } else {
            FAILED.setOpaque(this, ++failed);
        }
    }

    /** Call after call until the window ends. */
    void closed() {
        long now = System.nanoTime();
        while (left-- != 0 && now < window.endNs) {
            Op op = script.next();
            if (op == null) {
                break;
            }
            peak = 1;
            long outcome;
            long began = System.nanoTime();
            try {
                Object answer = session.call(op);
                now = System.nanoTime();
                outcome = Outcome.of(answer, op);
            } catch (Throwable thrown) {
                now = System.nanoTime();
                outcome = session.failure(thrown);
            }
            note(op, outcome, began, now, 0);
        }
        sentNs = endedNs = now;
    }

    /**
     * Up to `depth` operations outstanding. A caller with futures waits for the oldest, and takes
     * with it whatever else is there by then; a reply is noted when it is taken.
     */
    void pipelined(int depth) {
        Op[] ops = new Op[depth];
        Future<?>[] futures = new Future<?>[depth];
        long[] begans = new long[depth];
        int oldest = 0;
        int count = 0;
        while (true) {
            int before = count;
            while (count < depth && left != 0) {
                Op op = script.next();
                long began = System.nanoTime();
                if (op == null || began >= window.endNs) {
                    left = 0;
                    break;
                }
                left--;
                int slot = oldest + count < depth ? oldest + count : oldest + count - depth;
                try {
                    futures[slot] = session.begin(op);
                } catch (Throwable thrown) {
                    sentNs = endedNs = System.nanoTime();
                    note(op, session.failure(thrown), began, endedNs, 0);
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
            } while (count > 0 && futures[oldest].isDone());
        }
    }

    private void take(Op op, Future<?> future, long began) {
        long outcome;
        try {
            long readNs = Math.max(sentNs, endedNs); // the clock, when it was read last
            long leftNs = Math.max(0, window.timeoutNs - (readNs - began));
            Object answer = session.end(op, future, leftNs);
            endedNs = System.nanoTime();
            outcome = Outcome.of(answer, op);
        } catch (Throwable thrown) {
            endedNs = System.nanoTime();
            outcome = session.failure(thrown);
        }
        note(op, outcome, began, endedNs, 0);
    }

    /** Each call when it is due, or as soon after that as this caller is free. */
    void opened(AtomicInteger inFlight) {
        long now = 0;
        while (left-- != 0) {
            Op op = script.next();
            if (op == null) {
                return;
            }
            long due = window.startNs + script.dueNs();
            if (due >= window.endNs || !window.await(due)
                    || System.nanoTime() >= window.drainNs()) {
                leave(op, due);
                return;
            }
            if (now > due) {
                bound++; // the call before took until after this one was due
            }
            peak = Math.max(peak, inFlight.incrementAndGet());
            long outcome;
            long began = System.nanoTime();
            try {
                Object answer = session.call(op);
                now = System.nanoTime();
                outcome = Outcome.of(answer, op);
            } catch (Throwable thrown) {
                now = System.nanoTime();
                outcome = session.failure(thrown);
            }
            inFlight.decrementAndGet();
            note(op, outcome, began, now, began - due);
            sentNs = endedNs = now;
        }
    }

    /** Note what was due in the window and will not be sent: it waited at least until now. */
    private void leave(Op first, long firstDue) {
        long now = System.nanoTime();
        long until = Math.min(window.endNs, now);
        long due = firstDue;
        for (Op op = first; op != null && due < until; op = left-- != 0 ? script.next() : null) {
            if (op != first) {
                due = window.startNs + script.dueNs();
            }
            if (due < until) {
                unsent++;
                tally.unsent(op, now - due);
            }
        }
    }

    /** End operations that had no reply by commands that have one. */
    void endQuiet() {
        if (ok + failed == 0) {
            return;
        }
        try {
            barriers = session.barrier();
            endedNs = System.nanoTime();
        } catch (Exception error) { // the server is gone, and with it what was sent last
            System.err.println("no answer after the last operations without one: " + error);
        }
    }
}
