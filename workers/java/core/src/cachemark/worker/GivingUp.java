package cachemark.worker;

import com.google.gson.JsonObject;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/** A session whose caller gives up some of its calls (PROTOCOL.md, `GiveUp`): it cancels their futures. */
final class GivingUp implements Session {
    /** A wait checks at this interval whether the reply is there. */
    private static final long LOOK_NS = 200_000;

    private final Session session;
    private final long timeoutNs;
    private final long every;
    private final long afterNs;
    private final long beginNs;
    private final long endNs;
    /** The calls in the part of the window so far. */
    private long calls;

    GivingUp(Session session, JsonObject asked, Window window) {
        this.session = session;
        timeoutNs = window.timeoutNs;
        every = asked.get("every").getAsLong();
        afterNs = asked.get("after_ms").getAsLong() * 1_000_000;
        beginNs = window.startNs + asked.get("begin_ms").getAsLong() * 1_000_000;
        endNs = window.startNs + asked.get("end_ms").getAsLong() * 1_000_000;
    }

    @Override
    public Object call(Op op) throws Exception {
        return hasCome() && canBeGivenUp(op) ? giveUp(op) : session.call(op);
    }

    /** Whether the call that begins now is one of each `every` calls in the part. */
    private boolean hasCome() {
        long now = System.nanoTime();
        return now >= beginNs && now < endNs && ++calls % every == 0;
    }

    /** An operation of two round trips, or without a future, cannot be given up. */
    private static boolean canBeGivenUp(Op op) {
        return op.verb != Verb.CAS && op.verb != Verb.VERSION;
    }

    private Object giveUp(Op op) throws Exception {
        Future<?> begun = session.begin(op);
        long until = System.nanoTime() + afterNs;
        while (!begun.isDone() && System.nanoTime() < until) {
            LockSupport.parkNanos(LOOK_NS);
        }
        if (begun.isDone()) {
            return session.end(op, begun, timeoutNs);
        }
        begun.cancel(true);
        throw new TimeoutException("the caller cancelled the call");
    }

    @Override
    public long failure(Throwable thrown) {
        return session.failure(thrown);
    }

    @Override
    public int barrier() throws Exception {
        return session.barrier();
    }

    @Override
    public void close() throws Exception {
        session.close();
    }
}
