package cachemark.clients;

import static cachemark.worker.Verify.CLIENT;
import static cachemark.worker.Verify.CONNECTION;
import static cachemark.worker.Verify.PROTOCOL;
import static cachemark.worker.Verify.SERVER;
import static cachemark.worker.Verify.TIMEOUT;

import cachemark.worker.Client;
import cachemark.worker.Op;
import cachemark.worker.Prepare;
import cachemark.worker.Session;
import cachemark.worker.Verb;
import cachemark.worker.Verify.Failure;
import cachemark.worker.Verify.Swap;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Locator;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.DefaultHashAlgorithm;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.OperationTimeoutException;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;
import net.spy.memcached.internal.GetFuture;
import net.spy.memcached.internal.OperationFuture;
import net.spy.memcached.ops.OperationErrorType;
import net.spy.memcached.ops.OperationException;
import net.spy.memcached.ops.OperationStatus;
import net.spy.memcached.ops.StatusCode;

/**
 * spymemcached: one connection and one thread of I/O for each client, and futures for everything.
 *
 * <p>Calls are a future and its `get`, whose status tells a miss from a failure. An error reply on the
 * text wire makes it connect anew. It has `gat` on the binary wire only, no quiet and multi-key sets.
 */
public class Spymemcached implements Client {
    private static final Set<String> KINDS =
            Set.of("get", "gets", "mget", "set", "add", "replace", "delete", "touch", "incr", "decr");

    static {
        // Its own logger prints each connection to stderr.
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    }

    @Override
    public String library() {
        return "spymemcached";
    }

    @Override
    public String version() {
        return Client.version(MemcachedClient.class, "net.spy/spymemcached");
    }

    @Override
    public List<String> wires() {
        return List.of("text", "binary");
    }

    @Override
    public Set<String> features() {
        return Set.of("threads", "pipeline", "in_order", "open_loop", "shared", "cluster", "login_sasl");
    }

    @Override
    public Set<String> kinds(String wire, boolean pipelined) {
        Set<String> kinds = new TreeSet<>(KINDS);
        if (wire.equals("binary")) {
            kinds.add("gat");
        }
        if (!pipelined) { // two round trips, and a call that blocks
            kinds.addAll(Set.of("cas", "version"));
        }
        return kinds;
    }

    @Override
    public Map<String, Set<String>> options() {
        return Map.of("profile", Set.of("common", "defaults"), "hashing", Set.of("default", "ketama"));
    }

    @Override
    public Session open(Prepare setup) throws IOException, InterruptedException {
        ConnectionFactoryBuilder factory = new ConnectionFactoryBuilder();
        factory.setProtocol(setup.binary() ? Protocol.BINARY : Protocol.TEXT);
        if (setup.ketama()) {
            factory.setLocatorType(Locator.CONSISTENT);
            factory.setHashAlg(DefaultHashAlgorithm.KETAMA_HASH);
        }
        if (setup.common()) {
            factory.setOpTimeout(setup.timeoutMs);
            factory.setOpQueueMaxBlockTime(setup.timeoutMs);
            // It cancels an operation that waits longer for the login: in a cold JVM, 1 s is too short.
            factory.setAuthWaitTime(setup.connectMs());
            factory.setTranscoder(new Raw());
        }
        encrypt(factory, setup);
        if (setup.login != null) {
            var who = new PlainCallbackHandler(setup.login.user(), setup.login.password());
            factory.setAuthDescriptor(new AuthDescriptor(new String[] {"PLAIN"}, who));
        }
        return opened(factory, setup, setup.connectMs());
    }

    Session opened(ConnectionFactoryBuilder factory, Prepare setup, long connectMs)
            throws IOException, InterruptedException {
        OpenSession opened = new OpenSession(new MemcachedClient(factory.build(), setup.servers));
        try {
            opened.connected(connectMs);
        } catch (IOException | InterruptedException unreachable) {
            opened.close();
            throw unreachable;
        }
        return opened;
    }

    /** Encrypt its connections on request. The library has no TLS, but its fork has. */
    void encrypt(ConnectionFactoryBuilder factory, Prepare setup) {}

    private static final class OpenSession implements Session {
        private final MemcachedClient client;
        private final long timeoutNs;

        private OpenSession(MemcachedClient client) {
            this.client = client;
            timeoutNs = TimeUnit.MILLISECONDS.toNanos(client.getOperationTimeout());
        }

        @Override
        public Object call(Op op) throws Exception {
            switch (op.verb) {
                case VERSION:
                    barrier();
                    return true;
                case CAS:
                    return swap(op);
                default:
                    return end(op, begin(op), timeoutNs);
            }
        }

        @Override
        public Future<?> begin(Op op) {
            return switch (op.verb) {
                case GET -> client.asyncGet(op.key);
                case GETS -> client.asyncGets(op.key);
                case GAT -> client.asyncGetAndTouch(op.key, op.exptimeS);
                case MGET -> client.asyncGetBulk(op.keys);
                case SET -> client.set(op.key, op.exptimeS, op.value);
                case ADD -> client.add(op.key, op.exptimeS, op.value);
                case REPLACE -> client.replace(op.key, op.exptimeS, op.value);
                case DELETE -> client.delete(op.key);
                case TOUCH -> client.touch(op.key, op.exptimeS);
                case INCR -> client.asyncIncr(op.key, op.amount);
                case DECR -> client.asyncDecr(op.key, op.amount);
                default -> throw new UnsupportedOperationException(op.verb.toString());
            };
        }

        @Override
        public Object end(Op op, Future<?> begun, long leftNs) throws Exception {
            Object value = begun.get(leftNs, TimeUnit.NANOSECONDS);
            if (op.verb == Verb.MGET) {
                return value;
            }
            OperationStatus status =
                    begun instanceof GetFuture<?> get ? get.getStatus() : ((OperationFuture<?>) begun).getStatus();
            return switch (op.verb) {
                case GET, INCR, DECR -> there(status) ? value : null;
                case GETS, GAT -> there(status) ? ((CASValue<?>) value).getValue() : null;
                case DELETE, TOUCH -> there(status);
                case ADD, REPLACE -> !refused(status) && there(status);
                default -> status.isSuccess();
            };
        }

        /** Whether a key was found. A status that is neither is a failure. */
        private static boolean there(OperationStatus status) throws Failure {
            if (status.isSuccess()) {
                return true;
            }
            if (status.getStatusCode() == StatusCode.ERR_NOT_FOUND) {
                return false;
            }
            throw new Failure(fault(status));
        }

        private static long fault(OperationStatus status) {
            return switch (status.getStatusCode()) {
                case ERR_INVAL, ERR_DELTA_BADVAL, ERR_UNKNOWN_COMMAND -> CLIENT;
                default -> SERVER;
            };
        }

        private static boolean refused(OperationStatus status) {
            return switch (status.getStatusCode()) {
                case ERR_NOT_STORED, ERR_EXISTS, ERR_NOT_FOUND -> true;
                default -> false;
            };
        }

        private Object swap(Op op) throws Exception {
            OperationFuture<CASValue<Object>> read = client.asyncGets(op.key);
            CASValue<Object> found = read.get(timeoutNs, TimeUnit.NANOSECONDS);
            if (!there(read.getStatus())) {
                return null;
            }
            CASResponse response = client.asyncCAS(op.key, found.getCas(), op.exptimeS, op.value)
                    .get(timeoutNs, TimeUnit.NANOSECONDS);
            return new Swap(
                    (byte[]) found.getValue(),
                    switch (response) {
                        case OK -> true;
                        case EXISTS, NOT_FOUND -> false;
                        default -> throw new Failure(SERVER);
                    });
        }

        @Override
        public long failure(Throwable thrown) {
            if (thrown instanceof Failure failure) {
                return failure.outcome;
            }
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            if (cause instanceof TimeoutException || cause instanceof OperationTimeoutException) {
                return TIMEOUT;
            }
            if (cause instanceof OperationException error) {
                return error.getType() == OperationErrorType.SERVER ? SERVER : CLIENT;
            }
            if (cause instanceof CancellationException || cause instanceof IOException) {
                return CONNECTION;
            }
            return cause instanceof IllegalStateException ? CLIENT : PROTOCOL;
        }

        /** Wait until each connection answers: the constructor does not, and TLS begins after it connects. */
        private void connected(long timeoutMs) throws IOException, InterruptedException {
            long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
            while (!client.getUnavailableServers().isEmpty() && System.nanoTime() < until) {
                Thread.sleep(1);
            }
            while (true) {
                try {
                    barrier();
                    return;
                } catch (IOException silent) {
                    if (System.nanoTime() >= until) {
                        throw silent;
                    }
                }
            }
        }

        /** `version` on each connection; leaves out connections without an answer in time. */
        @Override
        public int barrier() throws IOException {
            int connections = client.getNodeLocator().getAll().size();
            if (client.getVersions().size() < connections) {
                throw new IOException("no answer to `version`");
            }
            return connections;
        }

        @Override
        public void close() {
            client.shutdown();
        }
    }
}
