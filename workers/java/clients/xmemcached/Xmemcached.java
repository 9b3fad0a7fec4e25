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
import cachemark.worker.Verify;
import cachemark.worker.Verify.Swap;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.exception.MemcachedClientException;
import net.rubyeye.xmemcached.exception.MemcachedDecodeException;
import net.rubyeye.xmemcached.exception.MemcachedException;
import net.rubyeye.xmemcached.exception.MemcachedServerException;
import net.rubyeye.xmemcached.exception.UnknownCommandException;
import net.rubyeye.xmemcached.impl.KetamaMemcachedSessionLocator;
import net.rubyeye.xmemcached.transcoders.CachedData;
import net.rubyeye.xmemcached.transcoders.CompressionMode;
import net.rubyeye.xmemcached.transcoders.Transcoder;

/**
 * xmemcached: blocking calls over one connection for each client, by its own event loop.
 *
 * <p>By default it joins waiting gets into one, and asks once for a key that several callers want; in
 * the profile `common` each get is one request. It still writes several waiting requests at once, as
 * the other libraries do. On the binary wire it sends waiting sets as quiet sets, except the last;
 * this cannot be switched off, but each remains a separate set.
 *
 * <p>Left out: `incr` and `decr`, which create a missing counter, and a multi-key set, which the
 * library lacks. `gat` is on the binary wire only.
 */
public final class Xmemcached implements Client {
    private static final Pattern CLIENT_STATUS = Pattern.compile("^(Invalid arguments|Unknown command|Incr/Decr)");
    private static final Set<String> KINDS = Set.of(
            "get",
            "gets",
            "mget",
            "set",
            "add",
            "replace",
            "delete",
            "touch",
            "cas",
            "version",
            "set_noreply",
            "add_noreply",
            "replace_noreply",
            "delete_noreply");

    @Override
    public String library() {
        return "xmemcached";
    }

    @Override
    public String version() {
        return Client.version(MemcachedClient.class, "com.googlecode.xmemcached/xmemcached");
    }

    @Override
    public List<String> wires() {
        return List.of("text", "binary");
    }

    @Override
    public Set<String> features() {
        return Set.of("threads", "open_loop", "shared", "cluster", "merges");
    }

    @Override
    public Set<String> kinds(String wire, boolean pipelined) {
        Set<String> kinds = new TreeSet<>(KINDS);
        if (wire.equals("binary")) {
            kinds.add("gat");
        }
        return kinds;
    }

    @Override
    public Map<String, Set<String>> options() {
        return Map.of("profile", Set.of("common", "defaults"), "hashing", Set.of("default", "ketama"));
    }

    @Override
    public Session open(Prepare setup) throws Exception {
        XMemcachedClientBuilder builder = new XMemcachedClientBuilder(setup.servers);
        if (setup.binary()) {
            builder.setCommandFactory(new BinaryCommandFactory());
        }
        if (setup.ketama()) {
            builder.setSessionLocator(new KetamaMemcachedSessionLocator());
        }
        if (setup.common()) {
            builder.setConnectTimeout(setup.timeoutMs);
            builder.setOpTimeout(setup.timeoutMs);
            builder.setTranscoder(new Raw());
        }
        MemcachedClient client = builder.build();
        if (setup.common()) {
            client.setOptimizeGet(false);
        }
        OpenSession opened = new OpenSession(client, setup.servers.size());
        try {
            opened.barrier(); // the builder does not report an unreachable server
        } catch (Exception unreachable) {
            opened.close();
            throw unreachable;
        }
        return opened;
    }

    /** Bytes as they are, flags 0. */
    private static final class Raw implements Transcoder<Object> {
        @Override
        public CachedData encode(Object value) {
            return new CachedData(0, (byte[]) value);
        }

        @Override
        public Object decode(CachedData data) {
            return Verify.plain(data.getData(), data.getFlag());
        }

        @Override
        public void setPrimitiveAsString(boolean on) {}

        @Override
        public void setPackZeros(boolean on) {}

        @Override
        public void setCompressionThreshold(int bytes) {}

        @Override
        public boolean isPrimitiveAsString() {
            return false;
        }

        @Override
        public boolean isPackZeros() {
            return false;
        }

        @Override
        public void setCompressionMode(CompressionMode mode) {}
    }

    private record OpenSession(MemcachedClient client, int servers) implements Session {
        @Override
        public Object call(Op op) throws Exception {
            if (op.noreply) {
                send(op);
                return true;
            }
            return switch (op.verb) {
                case GET -> client.get(op.key);
                case GETS -> {
                    GetsResponse<Object> found = client.gets(op.key);
                    yield found == null ? null : found.getValue();
                }
                case GAT -> client.getAndTouch(op.key, op.exptimeS);
                case MGET -> client.get(op.keys);
                case SET -> client.set(op.key, op.exptimeS, op.value);
                case ADD -> client.add(op.key, op.exptimeS, op.value);
                case REPLACE -> client.replace(op.key, op.exptimeS, op.value);
                case DELETE -> client.delete(op.key);
                case TOUCH -> client.touch(op.key, op.exptimeS);
                case CAS -> swap(op);
                case VERSION -> barrier() > 0;
                default -> throw new UnsupportedOperationException(op.verb.toString());
            };
        }

        private void send(Op op) throws InterruptedException, MemcachedException {
            switch (op.verb) {
                case SET -> client.setWithNoReply(op.key, op.exptimeS, op.value);
                case ADD -> client.addWithNoReply(op.key, op.exptimeS, op.value);
                case REPLACE -> client.replaceWithNoReply(op.key, op.exptimeS, op.value);
                case DELETE -> client.deleteWithNoReply(op.key);
                default -> throw new UnsupportedOperationException(op.verb.toString());
            }
        }

        private Object swap(Op op) throws Exception {
            GetsResponse<Object> found = client.gets(op.key);
            return found == null
                    ? null
                    : new Swap((byte[]) found.getValue(), client.cas(op.key, op.exptimeS, op.value, found.getCas()));
        }

        @Override
        public long failure(Throwable thrown) {
            Throwable error = thrown.getCause() instanceof TimeoutException ? thrown.getCause() : thrown;
            if (error instanceof TimeoutException) {
                return TIMEOUT;
            }
            if (error instanceof MemcachedServerException) { // any binary status, told apart by its text
                String text = String.valueOf(error.getMessage());
                return CLIENT_STATUS.matcher(text).find() ? CLIENT : SERVER;
            }
            if (error instanceof MemcachedClientException
                    || error instanceof UnknownCommandException
                    || error instanceof IllegalArgumentException) {
                return CLIENT;
            }
            if (error instanceof MemcachedDecodeException) {
                return PROTOCOL;
            }
            return error instanceof MemcachedException ? CONNECTION : PROTOCOL;
        }

        /** `version` on each connection. */
        @Override
        public int barrier() throws Exception {
            int answered = client.getVersions().size();
            if (answered < servers) {
                throw new IOException("no connection");
            }
            return answered;
        }

        @Override
        public void close() throws IOException {
            client.shutdown();
        }
    }
}
