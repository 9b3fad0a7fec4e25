package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The client files for a harness with its own loops: opens clients, stores the keys, and plays each
 * caller's operations of a tape, one group at a time. Most tapes have groups of one operation.
 *
 * <p>With a depth above 1, a caller begins `depth` operations of a group and waits for all of them
 * before it begins the next ones. A client without futures makes one at a time.
 *
 * <p>Such a harness counts calls, not answers. So a call without a right and whole answer (a failure,
 * a wrong value, a missing key, a refused write) throws.
 */
public final class Calls implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger("");

    private final Tape tape;
    private final Prepare setup;
    private final Op[][] scripts;
    private final List<Session> sessions = new ArrayList<>();

    /** Connect; `moreOptions` is a JSON object. Raises Unsupported for what the client cannot do. */
    public Calls(
            String name,
            String[] addresses,
            String wire,
            Path tapePath,
            int threads,
            boolean shared,
            int depth,
            String profile,
            String moreOptions,
            int timeoutMs)
            throws Exception {
        LOG.setLevel(Level.WARNING);
        Client client = Client.load(name);
        boolean inside = client.wires().contains("none");
        tape = new Tape(tapePath);
        JsonObject request = new JsonObject();
        JsonArray servers = new JsonArray();
        if (!inside) {
            for (String address : addresses) {
                servers.add(address);
            }
        }
        JsonObject options = JsonParser.parseString(moreOptions).getAsJsonObject();
        options.addProperty("profile", profile);
        request.add("servers", servers);
        request.add("options", options);
        request.addProperty("wire", inside ? "none" : wire);
        request.addProperty("threads", threads);
        request.addProperty("connections", shared ? 1 : threads);
        request.addProperty("timeout_ms", timeoutMs);
        boolean pipelines = client.features().contains("pipeline");
        request.addProperty("depth", pipelines ? depth : 1);
        // A harness times whole groups, so it may await the futures of several servers in any order.
        Prepare setup = new Prepare(request, tape, false);
        setup.check(client);
        this.setup = setup;
        scripts = tape.scripts(0, threads, threads);
        try {
            for (int c = 0; c < setup.clients(); c++) {
                sessions.add(client.open(setup));
            }
            store();
        } catch (Throwable failed) {
            close();
            throw failed;
        }
    }

    private void store() throws Exception {
        Caller caller = new Caller(sessions.get(0), new Script.Prefill(tape, 0, 1), 1, setup);
        while (caller.call() != null) {}
    }

    /** The calls of one thread. */
    public Caller caller(int thread) {
        Session session = sessions.get(thread * sessions.size() / scripts.length);
        Script script = new Script.Looped(scripts[thread], null, 0);
        return new Caller(session, script, tape.file.group, setup);
    }

    /** One thread's operations, again and again. */
    public static final class Caller {
        private final Session session;
        private final Script script;
        private final int group;
        private final Op[] ops;
        private final Future<?>[] futures;
        private final long timeoutNs;

        private Caller(Session session, Script script, int group, Prepare setup) {
            this.session = session;
            this.script = script;
            this.group = group;
            ops = new Op[Math.min(setup.depth, group)];
            futures = new Future<?>[ops.length];
            timeoutNs = setup.timeoutMs * 1_000_000;
        }

        /** Make the calls of the next group; the last answer, or null. */
        public Object call() throws Exception {
            Object last = null;
            for (int made = 0; made < group; made += ops.length) {
                last = ops.length == 1 ? one() : together(Math.min(ops.length, group - made));
            }
            return last;
        }

        private Object together(int count) throws Exception {
            for (int i = 0; i < count; i++) {
                ops[i] = script.next();
                try {
                    futures[i] = session.begin(ops[i]);
                } catch (Throwable thrown) {
                    throw wrong(ops[i], session.failure(thrown), thrown);
                }
            }
            Object last = null;
            for (int i = 0; i < count; i++) {
                try {
                    last = session.end(ops[i], futures[i], timeoutNs);
                } catch (Throwable thrown) {
                    throw wrong(ops[i], session.failure(thrown), thrown);
                }
                check(ops[i], last);
            }
            return last;
        }

        private Object one() throws Exception {
            Op op = script.next();
            if (op == null) {
                return null;
            }
            Object answer;
            try {
                answer = session.call(op);
            } catch (Throwable thrown) {
                throw wrong(op, session.failure(thrown), thrown);
            }
            check(op, answer);
            return answer;
        }

        private static void check(Op op, Object answer) {
            long outcome = Verify.of(answer, op);
            if (!Verify.whole(outcome, op)) {
                throw wrong(op, outcome, null);
            }
        }

        private static RuntimeException wrong(Op op, long outcome, Throwable cause) {
            String text = Verb.kindName(op.kind) + ": " + Verify.text(outcome);
            return new IllegalStateException(text, cause);
        }
    }

    @Override
    public void close() throws Exception {
        for (Session session : sessions) {
            session.close();
        }
    }
}
