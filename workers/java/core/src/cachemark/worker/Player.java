package cachemark.worker;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
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

/** A client with its connections open, and the callers of this worker. */
final class Player {
    /** Histograms take 230 kB each: beyond this number of callers and kinds there are no sections. */
    private static final int MOST_SECTIONED = 64;

    final Prepare setup;
    private final Tape tape;
    private final List<Session> sessions = new ArrayList<>();
    private final ExecutorService callers;
    private final Op[][] scripts;
    private final long[][] times;
    /** For each lane: a recorder for each section of a window, or one. */
    private final Recorder[][] recorders;

    private final Timeline[] timelines;
    private final Groups[] groups;
    private final boolean quiet;
    /** The kinds of the tape and of its prefill. */
    private final Set<Integer> kinds = new TreeSet<>();

    private volatile Lane[] lanes = {};
    private boolean prefilled;
    private volatile boolean waits;
    private volatile boolean playing;
    private Slices slices;

    /** Any exception means that a server cannot be reached. */
    Player(Client client, Prepare setup) throws Exception {
        this.setup = setup;
        tape = setup.tape;
        int first = setup.share * setup.threads;
        int all = setup.shares * setup.threads;
        // An operation without a reply, or outstanding with others, could be overtaken on its way.
        boolean inTurn = setup.depth == 1 && !tape.kinds().contains(Verb.kindName(Verb.SET.kind(true)));
        boolean inOrder = inTurn || client.features().contains("in_order");
        boolean own = !setup.servers.isEmpty() && setup.connections <= setup.threads;
        if (!own || !inOrder || !setup.common() || tape.file.lanes != all) {
            tape.acceptAnyGeneration(); // operations may overtake each other, or the generations are for other lanes
        }
        scripts = tape.scripts(first, setup.threads, all);
        times = new long[setup.threads][];
        kinds.add(Verb.SET.kind(false)); // the prefill's
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
        groups = new Groups[setup.threads];
        Arrays.setAll(groups, t -> Groups.of(tape.file));
        Arrays.setAll(timelines, t -> new Timeline());
        for (Recorder[] sections : recorders) {
            Arrays.setAll(sections, section -> new Recorder(kinds, tape.file.openLoop));
        }
        callers = Executors.newFixedThreadPool(setup.threads);
        try {
            for (int c = 0; c < setup.clients(); c++) {
                sessions.add(setup.reconnectAfter > 0 ? new RenewedSession(client, setup) : client.open(setup));
            }
        } catch (Throwable unreachable) {
            close();
            throw unreachable;
        }
        System.gc(); // no window must collect the garbage of the preparation
    }

    /** The window of the next run; prepares everything before it begins. */
    Window window(long startUnixNs, Long durationMs) {
        for (Recorder[] sections : recorders) {
            for (Recorder recorder : sections) {
                recorder.reset();
            }
        }
        for (Groups each : groups) {
            each.reset();
        }
        Window window = Window.ofRun(startUnixNs, durationMs, timeoutNs());
        for (Timeline timeline : timelines) {
            timeline.reset(window.startNs, window.durationNs);
        }
        return window;
    }

    long timeoutNs() {
        return setup.timeoutMs * 1_000_000;
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

    /** Whether an operation is certainly outstanding: an open loop may have none for long. */
    boolean busy() {
        return playing && !waits;
    }

    /** Play one phase to its end: the fields of `done`. An open loop can log and give up its calls. */
    JsonObject run(JsonObject request, Window window) throws Exception {
        String phase = request.get("phase").getAsString();
        Long ops = Messages.number(request, "ops");
        boolean logsCalls = !Messages.text(request, "calls").isEmpty();
        boolean prefill = phase.equals("prefill");
        if (prefill && prefilled) {
            tape.acceptAnyGeneration(); // the earlier prefill failed, and its writes may still arrive
        }
        prefilled |= prefill;
        boolean openLoop = tape.file.openLoop && !prefill;
        JsonObject asked = openLoop ? Messages.object(request, "gives_up") : null;
        endSlices();
        takeRenewed();
        Lane[] own = new Lane[setup.threads];
        for (int t = 0; t < own.length; t++) {
            Session session = asked == null ? session(t) : new GivingUp(session(t), asked, window);
            own[t] = lane(t, session, prefill, ops, window, recorders[t]);
            if (logsCalls && openLoop) {
                own[t].calls = new CallLog(
                        t, own.length, tape.file.group, setup.share * setup.threads + t, setup.shares * setup.threads);
            }
        }
        AtomicInteger inFlight = new AtomicInteger();
        List<Callable<Void>> plays = new ArrayList<>();
        for (Lane lane : own) {
            plays.add(() -> play(lane, window, prefill, openLoop, inFlight));
        }
        lanes = own;
        waits = openLoop;
        playing = true;
        Heap heap = Messages.flag(request, "heap") ? Heap.now() : null;
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
        long[] cpuNs = Cpu.now().since(before, callersNs);
        JsonObject grown = heap == null ? null : Heap.now().since(heap);
        JsonObject done = Done.of(phase, own, openLoop, Done.Totals.of(window, own, cpuNs));
        done.add("heap", grown);
        done.addProperty("renewed", takeRenewed());
        return done;
    }

    /** Write the call log of the last run, which may still be going on. */
    void writeCalls(String path) throws IOException {
        CallLog.write(Path.of(path), lanes);
    }

    /** The connections that were reopened since the last call of this. */
    long takeRenewed() {
        long sum = 0;
        for (Session session : sessions) {
            sum += session instanceof RenewedSession own ? own.takeRenewed() : 0;
        }
        return sum;
    }

    private Session session(int t) {
        return sessions.get(t * sessions.size() / setup.threads);
    }

    private Lane lane(int t, Session session, boolean prefill, Long ops, Window window, Recorder[] rows) {
        int lane = setup.share * setup.threads + t;
        Script script = prefill
                ? new Script.Prefill(tape, lane, setup.shares * setup.threads)
                : new Script.Looped(scripts[t], times[t], tape.file.periodNs);
        if (session(t) instanceof RenewedSession own && !prefill) {
            script = own.renewing(script);
        }
        long limit = ops == null ? -1 : ops / setup.threads + (t < ops % setup.threads ? 1 : 0);
        Groups timed = prefill ? Groups.NONE : groups[t];
        SliceCount slice = new SliceCount(setup.wire.equals("none"), timed);
        return new Lane(session, script, rows, timelines[t], window, limit, slice);
    }

    /** Play until the window ends, in the caller's thread. */
    Void play(Lane lane, Window window, boolean prefill, boolean openLoop, AtomicInteger inFlight) {
        try {
            playLane(lane, window, prefill, openLoop, inFlight);
        } catch (RuntimeException | Error error) {
            window.stop(); // for the other callers
            throw error;
        }
        return null;
    }

    private void playLane(Lane lane, Window window, boolean prefill, boolean openLoop, AtomicInteger inFlight) {
        long cpuNs = Cpu.ofThisThread();
        window.await(window.startNs);
        if (openLoop) {
            lane.openLoop(inFlight);
        } else if (setup.depth > 1) {
            lane.pipelined(setup.depth, setup.refillAll);
        } else {
            lane.closedLoop();
        }
        if (quiet && !prefill) {
            lane.endQuiet();
        }
        lane.cpuNs += Cpu.ofThisThread() - cpuNs;
    }

    /** Slices from the tape's start on; allocates everything that they need. */
    Slices slices() {
        endSlices();
        Window none = window(0, null);
        takeRenewed();
        Lane[] own = new Lane[setup.threads];
        Recorder[] leadIns = new Recorder[setup.threads];
        for (int t = 0; t < own.length; t++) {
            own[t] = lane(t, session(t), false, null, none, new Recorder[] {recorders[t][0]});
            leadIns[t] = recorders[t].length > 1 ? recorders[t][1] : new Recorder(kinds, tape.file.openLoop);
        }
        slices = new Slices(this, own, leadIns, tape.file.openLoop, callers);
        System.gc(); // no slice must collect earlier garbage
        return slices;
    }

    /** The current slices, or null. */
    Slices openSlices() {
        return slices;
    }

    /** End the current slices, if any. */
    void endSlices() {
        if (slices != null) {
            slices.end();
            slices = null;
        }
    }

    /** Close the connections. */
    void close() {
        endSlices();
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
