package cachemark.worker;

import com.google.gson.JsonObject;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Lanes that stay ready, each in a parked thread, and play on for a short time at each request. All
 * their memory is allocated before the first slice.
 */
final class Slices {
    /** A call that outlasts every time-out by this much will never return. */
    private static final long LOST_NS = 5_000_000_000L;

    private static final int WARM_TURNS = 400;
    private static final long WARM_NS = 200_000_000;

    /** The sums of all lanes at the end of a slice. */
    static final class Sums {
        long ops;
        long errors;
        long leadInOps;
        long halfOps;
        /** Sums over the lanes with operations, and the number of these lanes. */
        long elapsedNs;

        long halfNs;
        long callers;
    }

    private final Player player;
    private final Lane[] lanes;
    private final Recorder[] leadIns;
    private final boolean openLoop;
    private final Thread[] threads;
    private final AtomicInteger inFlight = new AtomicInteger();
    private final AtomicInteger playing = new AtomicInteger();
    /** The last lane that is ready for the next slice releases a permit. */
    private final Semaphore over = new Semaphore(0);
    /** The number of requested slices. */
    private volatile int turn;

    private volatile boolean ending;
    private volatile Throwable failure;
    /** The current slice, or the last one. */
    private Window window;

    private long leadInNs;

    private long tapeNs;
    private long elapsedNs;
    private final SliceCpu cpu = new SliceCpu();

    Slices(Player player, Lane[] lanes, Recorder[] leadIns, boolean openLoop, ExecutorService callers) {
        this.player = player;
        this.lanes = lanes;
        this.leadIns = leadIns;
        this.openLoop = openLoop;
        threads = new Thread[lanes.length];
        playing.set(lanes.length);
        for (int t = 0; t < lanes.length; t++) {
            int lane = t;
            callers.execute(() -> playSlices(lane));
        }
        over.acquireUninterruptibly();
    }

    private void playSlices(int t) {
        threads[t] = Thread.currentThread();
        int seen = 0;
        while (true) {
            if (playing.decrementAndGet() == 0) {
                over.release();
            }
            while (turn == seen) {
                LockSupport.park(this);
            }
            seen++;
            if (ending) {
                return;
            }
            try {
                player.play(lanes[t], window, false, openLoop, inFlight);
            } catch (RuntimeException | Error error) {
                failure = error;
            }
        }
    }

    private void wakeLanes() {
        playing.set(lanes.length);
        turn++;
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
    }

    /** Let the lanes play a slice: its window, which a `stop` ends. */
    Window begin(long startUnixNs, long lengthNs, long leadInNs) {
        cpu.begin();
        this.leadInNs = leadInNs;
        window = Window.ofSlice(startUnixNs, tapeNs, lengthNs, player.timeoutNs());
        long countFromNs = leadInNs < lengthNs ? window.startNs + leadInNs : Long.MAX_VALUE;
        long middleNs = openLoop ? Long.MAX_VALUE : window.startNs + (leadInNs + lengthNs) / 2;
        for (int t = 0; t < lanes.length; t++) {
            lanes[t].beginSlice(window, leadIns[t], countFromNs, middleNs);
        }
        wakeLanes();
        return window;
    }

    /**
     * Play empty slices until the JVM has compiled the code of a change of turns, so that the first
     * slices cost no more than the others.
     */
    void warmUp(Consumer<JsonObject> send) throws Exception {
        long untilNs = System.nanoTime() + WARM_NS;
        for (int i = 0; i < WARM_TURNS && System.nanoTime() < untilNs; i++) {
            begin(0, 0, 0);
            await();
            send.accept(result());
        }
        cpu.reset();
        for (Lane lane : lanes) {
            lane.cpuNs = 0;
        }
    }

    /** Wait for the slice to end. False if a call of the library does not return. */
    boolean await() throws Exception {
        long longestNs = (openLoop ? 4 : 2) * window.timeoutNs + LOST_NS;
        while (!over.tryAcquire(1, TimeUnit.SECONDS)) {
            if (System.nanoTime() - Math.max(window.startNs, window.endNs) > longestNs) {
                return false;
            }
        }
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure != null) {
            throw (RuntimeException) failure;
        }
        return true;
    }

    /** The result of the ended slice; adds it to the totals. */
    JsonObject result() {
        Sums sums = new Sums();
        for (Lane lane : lanes) {
            lane.addTo(sums);
        }
        long tookNs = sums.callers == 0 ? 0 : sums.elapsedNs / sums.callers;
        if (openLoop) {
            long lengthNs = Math.max(0, window.endNs - window.startNs);
            tapeNs += lengthNs;
            tookNs = Math.max(0, lengthNs - leadInNs);
            sums.halfOps = sums.halfNs = 0;
        }
        elapsedNs += tookNs;
        cpu.end();
        JsonObject result = new JsonObject();
        result.addProperty("type", "slice_done");
        result.addProperty("ops", sums.ops);
        result.addProperty("errors", sums.errors);
        result.addProperty("lead_in_ops", sums.leadInOps);
        result.addProperty("elapsed_ns", tookNs);
        result.addProperty("half_ops", sums.halfOps);
        result.addProperty("half_ns", sums.callers == 0 ? 0 : sums.halfNs / sums.callers);
        return result;
    }

    /** End the lanes' threads' work. */
    void end() {
        ending = true;
        wakeLanes();
        cpu.close();
    }

    /** All slices together. */
    JsonObject done() {
        long callersNs = 0;
        for (Lane lane : lanes) {
            callersNs += lane.cpuNs;
        }
        long[] cpuNs = cpu.used().since(new Cpu(0, 0, 0), callersNs);
        JsonObject done = Done.of("measure", lanes, openLoop, new Done.Totals(elapsedNs, elapsedNs, cpuNs));
        for (Recorder leadIn : leadIns) {
            if (leadIn != leadIns[0]) {
                leadIns[0].add(leadIn);
            }
        }
        done.add("lead_in", leadIns[0].counts());
        done.addProperty("renewed", player.takeRenewed());
        return done;
    }
}
