package cachemark.clients;

import cachemark.worker.Client;
import cachemark.worker.Op;
import cachemark.worker.Outcome;
import cachemark.worker.Outcome.Swap;
import cachemark.worker.Session;
import cachemark.worker.Setup;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/**
 * No library at all: it remembers which keys are there, and answers at once. What is measured is
 * the loop's own cost.
 */
public final class Null implements Client {
    private static final Set<String> KINDS = Set.of("get", "gets", "gat", "mget", "set", "add",
            "replace", "delete", "touch", "version", "mset", "cas", "incr", "decr", "set_noreply",
            "add_noreply", "replace_noreply", "delete_noreply", "touch_noreply", "mset_noreply",
            "incr_noreply", "decr_noreply");

    @Override
    public String library() {
        return "none";
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public List<String> wires() {
        return List.of("none");
    }

    @Override
    public Set<String> features() {
        return Set.of("threads", "pipeline", "open_loop");
    }

    @Override
    public Set<String> kinds(String wire, boolean pipelined) {
        return KINDS;
    }

    @Override
    public Map<String, Set<String>> options() {
        return Map.of("profile", Set.of("common", "defaults"));
    }

    @Override
    public Session open(Setup setup) {
        return new Answers(setup.tape.keyCount());
    }

    private static final class Answers implements Session {
        private final boolean[] there;

        private Answers(int keys) {
            there = new boolean[keys];
        }

        @Override
        public Object call(Op op) {
            if (op.count() == 0) {
                return true;
            }
            int key = op.index(0);
            boolean found = there[key];
            switch (op.verb) {
                case GET, GETS, GAT:
                    return found ? op.expected() : null;
                case MGET:
                    return many(op);
                case CAS:
                    return found ? new Swap((byte[]) op.expected(), true) : null;
                case INCR, DECR:
                    return found ? op : null;
                case TOUCH:
                    return found;
                case DELETE:
                    there[key] = false;
                    return found;
                case ADD:
                    store(key);
                    return !found;
                case REPLACE:
                    return found;
                default:
                    for (int i = 0; i < op.count(); i++) {
                        store(op.index(i));
                    }
                    return true;
            }
        }

        /** What is there already is not written again: callers would take the memory in turns. */
        private void store(int key) {
            if (!there[key]) {
                there[key] = true;
            }
        }

        @Override
        public Future<?> begin(Op op) {
            return CompletableFuture.completedFuture(call(op));
        }

        @Override
        public Object end(Op op, Future<?> begun, long timeoutNs) throws Exception {
            return begun.get();
        }

        private Object many(Op op) {
            Map<?, ?> all = (Map<?, ?>) op.expected();
            Map<Object, Object> some = null;
            for (int i = 0; i < op.count(); i++) {
                if (!there[op.index(i)]) {
                    some = some == null ? new HashMap<>(all) : some;
                    some.remove(op.keys.get(i));
                }
            }
            return some == null ? all : some;
        }

        @Override
        public long failure(Throwable thrown) {
            return Outcome.CLIENT;
        }

        @Override
        public void close() {}
    }
}
