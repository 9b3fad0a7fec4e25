package cachemark.worker;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;

/**
 * The worker for memcached clients in Java: requests on stdin, answers on stdout, as PROTOCOL.md
 * says. The argument is the client's name: `spymemcached` is the class Spymemcached.
 */
public final class Worker {
    private static final long PROGRESS_MS = 1000;
    /** A call that outlasts every time-out by this much will never return. */
    private static final long LOST_NS = 5_000_000_000L;
    /** The root logger, kept alive with its level: the libraries log only warnings. */
    private static final Logger LOG = Logger.getLogger("");

    private final Gson gson =
            new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final BlockingQueue<JsonObject> inbox = new LinkedBlockingQueue<>();
    private final String name;
    private final OutputStream out;
    private volatile Window window;
    private volatile boolean ended;
    private Client client;
    private Player player;

    private Worker(String name, OutputStream out) {
        this.name = name;
        this.out = out;
    }

    /** Take the client's name; keep stdout for the protocol, even if a library prints. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1 || !arguments[0].matches("[a-z]+")) {
            System.err.println("worker CLIENT: one client of workers/java/worker.toml");
            System.exit(2);
        }
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err);
        LOG.setLevel(Level.WARNING);
        new Worker(arguments[0], out).serve();
        Runtime.getRuntime().halt(0); // without waiting for a call that may never return
    }

    private void serve() throws Exception {
        Thread listener = new Thread(this::listen, "requests");
        listener.setDaemon(true);
        listener.start();
        while (true) {
            JsonObject request = inbox.take();
            switch (request.get("type").getAsString()) {
                case "hello" -> send(answer(this::hello));
                case "prepare" -> send(answer(() -> prepare(request)));
                case "run" -> send(answer(() -> Sampler.sampled(request, () -> run(request))));
                case "begin_slices" -> send(answer(this::beginSlices));
                case "slice" -> send(answer(() -> slice(request)));
                case "end_slices" -> send(answer(this::endSlices));
                case "bye" -> {
                    return;
                }
                default -> {} // a stop has done its work when it was read
            }
        }
    }

    private void listen() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonObject request = Messages.parse(line);
                if (request == null) {
                    send(Messages.error("protocol", "not a request: " + line, true));
                    continue;
                }
                Window open = window;
                if (open != null && request.get("type").getAsString().matches("stop|bye")) {
                    open.stop();
                }
                inbox.add(request);
            }
        } catch (IOException error) {
            System.err.println("stdin: " + error);
        }
        ended = true;
        endAbandoned();
        JsonObject bye = new JsonObject();
        bye.addProperty("type", "bye");
        inbox.add(bye);
    }

    /** End a run if the orchestrator is gone. */
    private void endAbandoned() {
        if (ended && window != null) {
            Runtime.getRuntime().halt(0);
        }
    }

    private synchronized void send(JsonObject message) throws IOException {
        out.write((gson.toJson(message) + "\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    private static JsonObject answer(Callable<JsonObject> request) {
        try {
            return request.call();
        } catch (Unsupported refusal) {
            JsonObject answer = Messages.of("unsupported");
            answer.addProperty("reason", refusal.getMessage());
            answer.addProperty("remedy", refusal.remedy);
            return answer;
        } catch (TapeException error) {
            return Messages.error("tape", error.getMessage(), true);
        } catch (RenewedSession.Unreachable error) {
            return Messages.error("connect", error.getMessage(), true);
        } catch (Exception | Error error) {
            error.printStackTrace();
            boolean own = error instanceof OwnError;
            return Messages.error("internal", own ? error.getMessage() : OwnError.describe(error), true);
        }
    }

    /** The answer to `hello`, also if the library is missing. */
    private JsonObject hello() {
        client = Client.load(name);
        return Messages.ready(name, client);
    }

    /** Read the tape, refuse what the client cannot do, and connect. */
    private JsonObject prepare(JsonObject request) throws Exception {
        if (client == null) {
            client = Client.load(name);
        }
        if (player != null) { // after a failed prepare, no run may use the earlier player
            player.close();
            player = null;
        }
        Tape tape;
        try {
            tape = new Tape(Prepare.tape(request));
        } catch (IOException error) {
            return Messages.error("tape", error.toString(), true);
        }
        Prepare setup = new Prepare(request, tape);
        setup.check(client);
        try {
            player = new Player(client, setup);
        } catch (Exception unreachable) {
            String servers = setup.servers.stream()
                    .map(InetSocketAddress::toString)
                    .map(text -> text.substring(text.indexOf('/') + 1))
                    .collect(Collectors.joining(" "));
            return Messages.error("connect", servers + ": " + unreachable, true);
        }
        return Messages.of("ready");
    }

    /** Play a phase, and report progress each second. */
    private JsonObject run(JsonObject request) throws Exception {
        if (player == null) {
            return Messages.error("protocol", "run before prepare", true);
        }
        Player playing = player;
        Window own = playing.window(Messages.start(request), Messages.number(request, "duration_ms"));
        String calls = Messages.text(request, "calls");
        FutureTask<JsonObject> run = new FutureTask<>(() -> playing.run(request, own));
        window = own;
        endAbandoned();
        Thread thread = new Thread(run, "run");
        try {
            thread.start();
            return waitForRun(run, playing, own);
        } finally {
            window = null;
            if (run.isDone()) {
                thread.join(); // or it ends in the next run, whose allocated bytes would be unknown
            }
            if (!calls.isEmpty()) {
                playing.writeCalls(calls);
            }
        }
    }

    private JsonObject beginSlices() throws Exception {
        if (player == null) {
            return Messages.error("protocol", "begin_slices before prepare", true);
        }
        player.slices().warmUp(gson::toJson);
        return Messages.of("ready");
    }

    /** Let the callers play on for a short time. */
    private JsonObject slice(JsonObject request) throws Exception {
        Slices slices = player == null ? null : player.openSlices();
        if (slices == null) {
            return Messages.error("protocol", "slice without begin_slices", true);
        }
        long lengthNs = Messages.spanNs(request, "length_us");
        long leadInNs = request.has("lead_in_us") ? Messages.spanNs(request, "lead_in_us") : 0;
        if (leadInNs < 0 || leadInNs > lengthNs) {
            return Messages.error("protocol", "a slice whose lead-in is not a part of it", true);
        }
        Player playing = player;
        player = null; // until its callers have ended the slice, and can play on
        window = slices.begin(Messages.start(request), lengthNs, leadInNs);
        endAbandoned();
        try {
            if (!slices.await()) {
                return Messages.error("client", "a call of the library does not return", false);
            }
        } finally {
            window = null;
        }
        player = playing;
        return slices.result();
    }

    private JsonObject endSlices() {
        Slices slices = player == null ? null : player.openSlices();
        if (slices == null) {
            return Messages.error("protocol", "end_slices without begin_slices", true);
        }
        player.endSlices();
        return slices.done();
    }

    private JsonObject waitForRun(FutureTask<JsonObject> run, Player playing, Window own) throws Exception {
        long lastProgressNs = own.startNs;
        long before = 0;
        while (true) {
            try {
                return run.get(PROGRESS_MS, TimeUnit.MILLISECONDS);
            } catch (ExecutionException error) {
                player = null; // its callers cannot play again
                throw error.getCause() instanceof Exception cause ? cause : error;
            } catch (TimeoutException stillPlaying) {
                long ok = playing.okSoFar();
                long failed = playing.failedSoFar();
                send(Messages.progress(ok, failed));
                long now = System.nanoTime();
                if (ok + failed != before || !playing.busy()) {
                    lastProgressNs = Math.max(now, own.startNs);
                    before = ok + failed;
                }
                if (now - lastProgressNs > 2 * own.timeoutNs + LOST_NS
                        || !playing.busy() && now > own.lastEndNs() + LOST_NS) {
                    player = null;
                    return Messages.error("client", "a call of the library does not return", false);
                }
            }
        }
    }
}
