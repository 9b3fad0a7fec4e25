package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/** A client with its connections open, and the callers of this worker. */
final class Player {
    /** Histograms take 230 kB each: beyond so many callers and kinds there are no sections. */
    private static final int MOST_SECTIONED = 64;

    final Prepare setup;
    private final Tape tape;
    private final List<Session> sessions = new ArrayList<>();
    private final ExecutorService callers;
    private final Op[][] scripts;
    private final long[][] times;
    /** Of each lane: a recorder for each section of a window, or one. */
    private final Recorder[][] recorders;
    private final Timeline[] timelines;
    private final boolean quiet;
    private volatile Lane[] lanes = {};
    private volatile boolean waits;
    private volatile boolean playing;

    /** Whatever is thrown means that a server cannot be reached. */
    Player(Client client, Prepare setup) throws Exception {
        this.setup = setup;
        tape = setup.tape;
        int first = setup.share * setup.threads;
        int all = setup.shares * setup.threads;
        scripts = tape.scripts(first, setup.threads, all);
        times = new long[setup.threads][];
        Set<Integer> kinds = new TreeSet<>(Set.of(Verb.SET.kind(false))); // the prefill's
        boolean anyQuiet = false;
        for (int t = 0; t < setup.threads; t++) {
            times[t] = tape.file.openLoop ? tape.times(first + t, all) : null;
            for (Op op : scripts[t]) {
                kinds.add(op.kind);
                anyQuiet |= op.noreply;
            }
        }
        quiet = anyQuiet;
        int rows = setup.threads * kinds.size() <= MOST_SECTIONED ? Timeline.SECTIONS : 1;
        recorders = new Recorder[setup.threads][rows];
        timelines = new Timeline[setup.threads];
        Arrays.setAll(timelines, t -> new Timeline());
        for (Recorder[] sections : recorders) {
            Arrays.setAll(sections, section -> new Recorder(kinds, tape.file.openLoop));
        }
        callers = Executors.newFixedThreadPool(setup.threads);
        try {
            for (int c = 0; c < setup.clients(); c++) {
                sessions.add(client.open(setup));
            }
        } catch (Throwable unreachable) {
            close();
            throw unreachable;
        }
        System.gc(); // what was read is not to be collected in a window
    }

    /** The window of the run that comes next; what that run needs is there before it begins. */
    Window window(long startUnixNs, Long durationMs) {
        for (Recorder[] sections : recorders) {
            for (Recorder recorder : sections) {
                recorder.reset();
            }
        }
        Window window = new Window(startUnixNs, durationMs, setup.timeoutMs * 1_000_000);
        for (Timeline timeline : timelines) {
            timeline.reset(window.startNs, window.durationNs);
        }
        return window;
    }

    long okSoFar() {
        long sum = 0;
        for (Lane lane : lanes) {
            sum += lane.okSoFar();
        }
        return sum;
    }

    long failedSoFar() {
        long sum = 0;
        for (Lane lane : lanes) {
            sum += lane.failedSoFar();
        }
        return sum;
    }

    /** Whether an operation is surely outstanding: an open loop may have none for long. */
    boolean busy() {
        return playing && !waits;
    }

    /** Play one phase to its end: the fields of `done`. */
    JsonObject run(String phase, Long ops, Window window) throws Exception {
        boolean prefill = phase.equals("prefill");
        boolean openLoop = tape.file.openLoop && !prefill;
        Lane[] own = new Lane[setup.threads];
        for (int t = 0; t < own.length; t++) {
            own[t] = lane(t, prefill, ops, window);
        }
        AtomicInteger inFlight = new AtomicInteger();
        List<Callable<Void>> plays = new ArrayList<>();
        for (Lane lane : own) {
            plays.add(() -> play(lane, window, prefill, openLoop, inFlight));
        }
        lanes = own;
        waits = openLoop;
        playing = true;
        Cpu before = Cpu.now();
        try {
            for (Future<Void> played : callers.invokeAll(plays)) {
                played.get();
            }
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception cause ? cause : error;
        } finally {
            playing = false;
        }
        long callersNs = Arrays.stream(own).mapToLong(lane -> lane.cpuNs).sum();
        return done(phase, window, own, openLoop, Cpu.now().since(before, callersNs));
    }

    private Lane lane(int t, boolean prefill, Long ops, Window window) {
        int lane = setup.share * setup.threads + t;
        Script script = prefill
                ? new Script.Prefill(tape, lane, setup.shares * setup.threads)
                : new Script.Looped(scripts[t], times[t], tape.file.periodNs);
        long limit = ops == null ? -1
                : ops / setup.threads + (t < ops % setup.threads ? 1 : 0);
        Session session = sessions.get(t * sessions.size() / setup.threads);
        return new Lane(session, script, recorders[t], timelines[t], window, limit);
    }

    private Void play(Lane lane, Window window, boolean prefill, boolean openLoop,
            AtomicInteger inFlight) {
        try {
            playLane(lane, window, prefill, openLoop, inFlight);
        } catch (RuntimeException | Error error) {
            window.stop(); // for the other callers
            throw error;
        }
        return null;
    }

    private void playLane(Lane lane, Window window, boolean prefill, boolean openLoop,
            AtomicInteger inFlight) {
        long cpuNs = Cpu.ofThisThread();
        window.await(window.startNs);
        if (openLoop) {
            lane.openLoop(inFlight);
        } else if (setup.depth > 1) {
            lane.pipelined(setup.depth);
        } else {
            lane.closedLoop();
        }
        if (quiet && !prefill) {
            lane.endQuiet();
        }
        lane.cpuNs = Cpu.ofThisThread() - cpuNs;
    }

    private JsonObject done(String phase, Window window, Lane[] own, boolean openLoop,
            long[] cpuNs) {
        long sentNs = window.startNs;
        long endedNs = window.startNs;
        long inFlight = 0;
        long queued = 0;
        long unsent = 0;
        long barriers = 0;
        JsonObject sections = sections(own);
        Recorder sum = own[0].recorders[0];
        for (Lane lane : own) {
            sentNs = Math.max(sentNs, lane.sentNs);
            endedNs = Math.max(endedNs, lane.endedNs);
            // In an open loop each lane has seen the count of all.
            inFlight = openLoop ? Math.max(inFlight, lane.peak) : inFlight + lane.peak;
            queued += lane.queued;
            unsent += lane.unsent;
            barriers += lane.barriers;
            for (Recorder recorder : lane.recorders) {
                if (recorder != sum) {
                    sum.add(recorder);
                }
            }
        }
        JsonObject done = new JsonObject();
        done.addProperty("type", "done");
        done.addProperty("phase", phase);
        done.addProperty("elapsed_ns", endedNs - window.startNs);
        done.addProperty("send_elapsed_ns", sentNs - window.startNs);
        done.add("operations", sum.operations());
        done.addProperty("send_lag", openLoop ? Recorder.encode(sum.lag) : null);
        done.addProperty("max_in_flight", inFlight);
        done.addProperty("queued", queued);
        done.addProperty("unsent", unsent);
        // A library that connects again does not say so: these are the worker's own, none.
        done.addProperty("reconnects", 0);
        done.addProperty("cpu_user_ns", cpuNs[0]);
        done.addProperty("cpu_system_ns", cpuNs[1]);
        done.addProperty("barriers", barriers);
        done.add("timeline", own[0].timeline.message());
        done.add("sections", sections);
        return done;
    }

    /** The sections of all lanes, whose timelines become that of the first; null without any. */
    private static JsonObject sections(Lane[] own) {
        Timeline timeline = own[0].timeline;
        Arrays.stream(own).skip(1).forEach(lane -> timeline.add(lane.timeline));
        JsonObject sections = own[0].recorders.length == 1 ? null : timeline.sections();
        if (sections == null) {
            return null;
        }
        JsonArray responses = new JsonArray();
        for (int section = 0; section < Timeline.SECTIONS; section++) {
            Histogram sum = Recorder.histogram();
            for (Lane lane : own) {
                lane.recorders[section].addResponses(sum);
            }
            responses.add(Recorder.encode(sum));
        }
        sections.add("response", responses);
        return sections;
    }

    /** Close the connections. */
    void close() {
        callers.shutdownNow();
        for (Session session : sessions) {
            try {
                session.close();
            } catch (Exception error) {
                System.err.println("while closing: " + error);
            }
        }
    }
}
