package cachemark.clients;

import cachemark.worker.Client;
import cachemark.worker.Op;
import cachemark.worker.Prepare;
import cachemark.worker.Session;
import cachemark.worker.Tape;
import cachemark.worker.Verify;
import cachemark.worker.Verify.Swap;
import java.util.AbstractMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/**
 * No library: it answers at once, and stores nothing. The keys of the prefill are always there, and no
 * others. It measures the loop's own cost.
 */
public final class Null implements Client {
    private static final Set<String> KINDS = Set.of(
            "get",
            "gets",
            "gat",
            "mget",
            "set",
            "add",
            "replace",
            "delete",
            "touch",
            "version",
            "mset",
            "cas",
            "incr",
            "decr",
            "set_noreply",
            "add_noreply",
            "replace_noreply",
            "delete_noreply",
            "touch_noreply",
            "mset_noreply",
            "incr_noreply",
            "decr_noreply");

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
    public Session open(Prepare setup) {
        return new Answers(setup.tape);
    }

    private static final class Answers implements Session {
        private final Tape tape;
        private final byte[][] values;

        private Answers(Tape tape) {
            this.tape = tape;
            values = new byte[tape.prefillCount()][];
            long mayKeepBytes = Runtime.getRuntime().maxMemory() / 4;
            for (int k = 0; k < values.length && mayKeepBytes > 0; k++) {
                values[k] = tape.prefilled(k);
                mayKeepBytes -= values[k].length;
            }
        }

        /** The prefill's value of a key, or null; cut anew if there were too many to keep. */
        private byte[] value(int key) {
            if (key >= values.length) {
                return null;
            }
            return values[key] != null ? values[key] : tape.prefilled(key);
        }

        @Override
        public Object call(Op op) {
            switch (op.verb) {
                case GET, GETS, GAT:
                    return value(op.index(0));
                case MGET:
                    return new Found(this, op);
                case CAS:
                    return there(op) ? new Swap(value(op.index(0)), true) : null;
                case INCR, DECR:
                    return there(op) ? op : null;
                case TOUCH, DELETE, REPLACE:
                    return there(op);
                case ADD:
                    return !there(op);
                default:
                    return true;
            }
        }

        private boolean there(Op op) {
            return op.index(0) < values.length;
        }

        @Override
        public Future<?> begin(Op op) {
            return CompletableFuture.completedFuture(call(op));
        }

        @Override
        public Object end(Op op, Future<?> begun, long timeoutNs) throws Exception {
            return begun.get();
        }

        @Override
        public long failure(Throwable thrown) {
            return Verify.CLIENT;
        }

        @Override
        public void close() {}
    }

    /** The values of a batch; look-ups in the batch's order are fastest. */
    private static final class Found extends AbstractMap<String, byte[]> {
        private final Answers answers;
        private final Op op;
        private int at;

        private Found(Answers answers, Op op) {
            this.answers = answers;
            this.op = op;
        }

        @Override
        public byte[] get(Object key) {
            for (int tried = 0; tried < op.count(); tried++) {
                int position = at;
                at = at + 1 < op.count() ? at + 1 : 0;
                if (op.keys.get(position).equals(key)) {
                    return answers.value(op.index(position));
                }
            }
            return null;
        }

        @Override
        public int size() {
            int found = 0;
            for (int i = 0; i < op.count(); i++) {
                found += op.index(i) < answers.values.length ? 1 : 0;
            }
            return found;
        }

        @Override
        public Set<Map.Entry<String, byte[]>> entrySet() {
            throw new UnsupportedOperationException();
        }
    }
}
