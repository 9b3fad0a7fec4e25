package cachemark.clients;

import cachemark.worker.Op;
import cachemark.worker.Prepare;
import cachemark.worker.Session;
import cachemark.worker.Verify;
import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.Policy.VarExpiration;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Caffeine: a cache in this process, for scale. All callers share it.
 *
 * <p>Its bound is the number of keys on the tape, so that it does the work of a bounded cache, but
 * evicts nothing. If the tape has expiry times, each entry has its own.
 */
public final class Caffeine implements cachemark.worker.Client {
    private static final Set<String> KINDS = Set.of("get", "mget", "set", "add", "replace", "delete");
    private static final Duration FOR_EVER = Duration.ofNanos(Long.MAX_VALUE);

    @Override
    public String library() {
        return "caffeine";
    }

    @Override
    public String version() {
        return cachemark.worker.Client.version(Cache.class, "com.github.ben-manes.caffeine/caffeine");
    }

    @Override
    public List<String> wires() {
        return List.of("none");
    }

    @Override
    public Set<String> features() {
        return Set.of("threads", "open_loop");
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
        var builder = com.github.benmanes.caffeine.cache.Caffeine.newBuilder().maximumSize(setup.tape.keyCount());
        if (!setup.tape.expires()) {
            return new OpenSession(builder.build(), null);
        }
        Cache<String, byte[]> cache = builder.<String, byte[]>expireAfter(Expiry.creating((key, value) -> FOR_EVER))
                .build();
        return new OpenSession(cache, cache.policy().expireVariably().orElseThrow());
    }

    private record OpenSession(Cache<String, byte[]> cache, VarExpiration<String, byte[]> expiring) implements Session {
        @Override
        public Object call(Op op) {
            return switch (op.verb) {
                case GET -> cache.getIfPresent(op.key);
                case MGET -> cache.getAllPresent(op.keys);
                case SET -> {
                    if (expiring == null) {
                        cache.put(op.key, op.value);
                    } else {
                        expiring.put(op.key, op.value, lifetime(op));
                    }
                    yield true;
                }
                case ADD ->
                    expiring == null
                            ? cache.asMap().putIfAbsent(op.key, op.value) == null
                            : expiring.putIfAbsent(op.key, op.value, lifetime(op)) == null;
                case REPLACE -> replace(op);
                case DELETE -> cache.asMap().remove(op.key) != null;
                default -> throw new UnsupportedOperationException(op.verb.toString());
            };
        }

        private static Duration lifetime(Op op) {
            return op.exptimeS == 0 ? FOR_EVER : Duration.ofSeconds(op.exptimeS);
        }

        private boolean replace(Op op) {
            if (expiring == null) {
                return cache.asMap().replace(op.key, op.value) != null;
            }
            boolean there = cache.asMap().replace(op.key, op.value) != null;
            expiring.setExpiresAfter(op.key, lifetime(op));
            return there;
        }

        @Override
        public long failure(Throwable thrown) {
            return Verify.CLIENT;
        }

        @Override
        public void close() {
            cache.invalidateAll();
        }
    }
}
