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
import cachemark.worker.Tls;
import cachemark.worker.Verify.Failure;
import cachemark.worker.Verify.Swap;
import com.spotify.folsom.AsciiMemcacheClient;
import com.spotify.folsom.BinaryMemcacheClient;
import com.spotify.folsom.GetResult;
import com.spotify.folsom.MemcacheClient;
import com.spotify.folsom.MemcacheClientBuilder;
import com.spotify.folsom.MemcacheClosedException;
import com.spotify.folsom.MemcacheOverloadedException;
import com.spotify.folsom.MemcacheStatus;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;

/**
 * folsom: completion stages over netty, one connection for each client. A blocking call awaits a
 * stage.
 *
 * <p>A time-out closes its connection, and so does an unexpected error reply: all later calls fail
 * at once until it is connected again. It asks for a key of its own when it connects, before any
 * window. `text` is its ascii client. It has no `version`, no multi-key set and no operations without
 * a reply; `gat` is on the binary wire only, `incr` and `decr` on the text wire only, since on the
 * binary wire they create a missing counter. It turns an expiry time of 30 days or more into an
 * instant. Its consistent hashing is its own, not ketama's.
 */
public final class Folsom implements Client {
    private static final Pattern CLIENT_STATUS =
            Pattern.compile("CLIENT_ERROR|INVALID_ARGUMENTS|UNKNOWN_COMMAND|INCR_DECR_ON_NON_NUMERIC_VALUE");
    private static final Set<String> KINDS = Set.of("get", "gets", "mget", "set", "add", "replace", "delete", "touch");
    private static final int LEAST_OUTSTANDING = 1000;

    @Override
    public String library() {
        return "folsom";
    }

    @Override
    public String version() {
        return Client.version(MemcacheClient.class, "com.spotify/folsom");
    }

    @Override
    public List<String> wires() {
        return List.of("text", "binary");
    }

    @Override
    public Set<String> features() {
        return Set.of(
                "threads", "pipeline", "in_order", "open_loop", "shared", "cluster", "tls", "login_sasl", "login_text");
    }

    @Override
    public Set<String> kinds(String wire, boolean pipelined) {
        Set<String> kinds = new TreeSet<>(KINDS);
        kinds.addAll(wire.equals("binary") ? Set.of("gat") : Set.of("incr", "decr"));
        if (!pipelined) { // two round trips
            kinds.add("cas");
        }
        return kinds;
    }

    @Override
    public Map<String, Set<String>> options() {
        return Map.of("profile", Set.of("common", "defaults"), "hashing", Set.of("default"));
    }

    @Override
    public Session open(Prepare setup) throws Exception {
        MemcacheClientBuilder<byte[]> builder = MemcacheClientBuilder.newByteArrayClient();
        for (InetSocketAddress server : setup.servers) {
            builder.withAddress(server.getHostString(), server.getPort());
        }
        if (setup.tls != null) {
            builder.withSSLEngineFactory((host, port) -> engine(setup.tls, host, port));
        }
        if (setup.login != null) {
            builder.withUsernamePassword(setup.login.user(), setup.login.password());
        }
        if (setup.common()) {
            builder.withConnectionTimeoutMillis(setup.timeoutMs);
            builder.withMaxOutstandingRequests(Math.max(LEAST_OUTSTANDING, setup.outstanding()));
            builder.withMaxSetLength(Integer.MAX_VALUE); // the server decides which values are too large
            builder.withRetry(false); // no retry after a closed connection
        }
        MemcacheClient<byte[]> client = setup.binary() ? builder.connectBinary() : builder.connectAscii();
        try {
            client.awaitFullyConnected(setup.connectMs(), TimeUnit.MILLISECONDS);
        } catch (Exception unreachable) {
            client.shutdown();
            throw unreachable;
        }
        return new OpenSession(client, TimeUnit.MILLISECONDS.toNanos(setup.timeoutMs));
    }

    /** The library's own engines verify no names. */
    private static SSLEngine engine(Tls tls, String host, int port) {
        SSLEngine engine = tls.context.createSSLEngine(tls.name == null ? host : tls.name, port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        engine.setSSLParameters(parameters);
        return engine;
    }

    private record OpenSession(MemcacheClient<byte[]> client, long timeoutNs) implements Session {
        @Override
        public Object call(Op op) throws Exception {
            return switch (op.verb) {
                case CAS -> swap(op);
                default -> end(op, begin(op), timeoutNs);
            };
        }

        @Override
        public Future<?> begin(Op op) {
            CompletionStage<?> stage =
                    switch (op.verb) {
                        case GET -> client.get(op.key);
                        case GETS -> client.casGet(op.key);
                        case GAT -> ((BinaryMemcacheClient<?>) client).getAndTouch(op.key, op.exptimeS);
                        case MGET -> client.get(op.keys);
                        case SET -> client.set(op.key, op.value, op.exptimeS);
                        case ADD -> client.add(op.key, op.value, op.exptimeS);
                        case REPLACE -> client.replace(op.key, op.value, op.exptimeS);
                        case DELETE -> client.delete(op.key);
                        case TOUCH -> client.touch(op.key, op.exptimeS);
                        case INCR -> ((AsciiMemcacheClient<?>) client).incr(op.key, op.amount);
                        case DECR -> ((AsciiMemcacheClient<?>) client).decr(op.key, op.amount);
                        default -> throw new UnsupportedOperationException(op.verb.toString());
                    };
            return stage.toCompletableFuture();
        }

        @Override
        public Object end(Op op, Future<?> begun, long leftNs) throws Exception {
            Object value = begun.get(leftNs, TimeUnit.NANOSECONDS);
            return switch (op.verb) {
                case GET, GAT, INCR, DECR -> value;
                case GETS -> value == null ? null : ((GetResult<?>) value).getValue();
                case MGET -> found(op, (List<?>) value);
                case SET -> value == MemcacheStatus.OK;
                default -> done((MemcacheStatus) value);
            };
        }

        /** The library's list has null for a key that was not found. */
        private static Map<String, Object> found(Op op, List<?> values) {
            Map<String, Object> found = new HashMap<>();
            for (int i = 0; i < values.size(); i++) {
                if (values.get(i) != null) {
                    found.put(op.keys.get(i), values.get(i));
                }
            }
            return found;
        }

        /** Whether it was done or refused; any other status is a failure. */
        private static boolean done(MemcacheStatus status) throws Failure {
            return switch (status) {
                case OK -> true;
                case KEY_NOT_FOUND, KEY_EXISTS, ITEM_NOT_STORED -> false;
                case INVALID_ARGUMENTS, UNKNOWN_COMMAND, INCR_DECR_ON_NON_NUMERIC_VALUE -> throw new Failure(CLIENT);
                default -> throw new Failure(SERVER);
            };
        }

        private Object swap(Op op) throws Exception {
            GetResult<byte[]> found =
                    client.casGet(op.key).toCompletableFuture().get(timeoutNs, TimeUnit.NANOSECONDS);
            if (found == null) {
                return null;
            }
            MemcacheStatus status = client.set(op.key, op.value, op.exptimeS, found.getCas())
                    .toCompletableFuture()
                    .get(timeoutNs, TimeUnit.NANOSECONDS);
            return new Swap(found.getValue(), done(status));
        }

        @Override
        public long failure(Throwable thrown) {
            if (thrown instanceof Failure failure) {
                return failure.outcome;
            }
            Throwable error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            if (error instanceof TimeoutException) {
                return TIMEOUT;
            }
            if (error instanceof MemcacheClosedException closed) {
                return reason(String.valueOf(closed.getMessage()));
            }
            if (error instanceof MemcacheOverloadedException || error instanceof IllegalArgumentException) {
                return CLIENT;
            }
            return PROTOCOL;
        }

        /** Why the library closed the connection: it reports nothing else. */
        private static long reason(String text) {
            if (text.contains("SERVER_ERROR") || text.contains("OUT_OF_MEMORY")) {
                return SERVER;
            }
            if (CLIENT_STATUS.matcher(text).find()) {
                return CLIENT;
            }
            if (text.startsWith("Timeout")) {
                return TIMEOUT;
            }
            return text.startsWith("Unexpected") ? PROTOCOL : CONNECTION;
        }

        @Override
        public void close() {
            client.shutdown();
        }
    }
}
