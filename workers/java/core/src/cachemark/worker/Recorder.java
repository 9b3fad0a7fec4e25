package cachemark.worker;

import com.google.gson.JsonObject;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Set;
import org.HdrHistogram.Histogram;

/** The counts and histograms of one lane by kind of operation: allocated when it is prepared. */
final class Recorder {
    private static final long HIGHEST_NS = 100_000_000_000L;
    private static final int DIGITS = 3;

    private final Kind[] kinds = new Kind[Verb.KINDS];
    private final boolean openLoop;
    final Histogram lag;

    Recorder(Set<Integer> kinds, boolean openLoop) {
        this.openLoop = openLoop;
        lag = openLoop ? histogram() : null;
        for (int kind : kinds) {
            this.kinds[kind] = new Kind(openLoop);
        }
    }

    static Histogram histogram() {
        return new Histogram(1, HIGHEST_NS, DIGITS);
    }

    static void record(Histogram histogram, long ns) {
        histogram.recordValue(Math.min(Math.max(ns, 1), HIGHEST_NS));
    }

    /** Note an operation, which was sent `lagNs` after its due instant. */
    void note(Op op, long outcome, long serviceNs, long lagNs) {
        Kind kind = kinds[op.kind];
        kind.attempts++;
        if (outcome >= 0) {
            kind.ok++;
            kind.found += outcome & Verify.FOUND_MASK;
            kind.refused += (outcome & Verify.REFUSED) == 0 ? 0 : 1;
            kind.keys += op.count;
            kind.keyBytes += op.keyBytes;
            kind.valueBytes += outcome >>> Verify.SIZE_BIT;
            kind.busyNs += serviceNs;
        } else {
            kind.failed[(int) -outcome]++;
            if (outcome != Verify.TIMEOUT) {
                return; // a failure's duration means nothing, except a timeout's
            }
        }
        record(kind.service, serviceNs);
        if (openLoop) {
            record(kind.response, serviceNs + lagNs);
            record(lag, lagNs);
        }
    }

    /** Note an operation that was due and will not be sent: it waited at least this time. */
    void unsent(Op op, long waitedNs) {
        record(kinds[op.kind].response, waitedNs);
    }

    /** Add the response times of all kinds to a histogram. */
    void addResponses(Histogram to) {
        for (Kind kind : kinds) {
            if (kind != null) {
                to.add(kind.response);
            }
        }
    }

    /** Forget everything; the memory stays. */
    void reset() {
        for (Kind kind : kinds) {
            if (kind != null) {
                kind.reset();
            }
        }
        if (openLoop) {
            lag.reset();
        }
    }

    void add(Recorder other) {
        for (int k = 0; k < kinds.length; k++) {
            if (kinds[k] != null) {
                kinds[k].add(other.kinds[k]);
            }
        }
        if (openLoop) {
            lag.add(other.lag);
        }
    }

    /** The counts of the played operations, without the times. */
    JsonObject counts() {
        JsonObject operations = new JsonObject();
        for (int k = 0; k < kinds.length; k++) {
            if (kinds[k] != null && kinds[k].attempts > 0) {
                operations.add(Verb.kindName(k), kinds[k].counts(Verb.looksUp(k)));
            }
        }
        return operations;
    }

    JsonObject operations() {
        JsonObject operations = new JsonObject();
        for (int k = 0; k < kinds.length; k++) {
            if (kinds[k] != null && (kinds[k].attempts > 0 || encode(kinds[k].response) != null)) {
                operations.add(Verb.kindName(k), kinds[k].message(Verb.looksUp(k)));
            }
        }
        return operations;
    }

    /** A histogram's text for messages; null if it is empty. */
    static String encode(Histogram histogram) {
        if (histogram == null || histogram.getTotalCount() == 0) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        buffer.flip().limit(length);
        byte[] encoded = Base64.getEncoder().encode(buffer).array();
        return new String(encoded, StandardCharsets.US_ASCII);
    }

    private static final class Kind {
        private final Histogram service = histogram();
        /** In a closed loop response and service are the same samples. */
        private final Histogram response;

        private final long[] failed = new long[Verify.NAMES.length];
        private long attempts;
        private long ok;
        private long found;
        private long refused;
        private long keys;
        private long keyBytes;
        private long valueBytes;
        private long busyNs;

        private Kind(boolean openLoop) {
            response = openLoop ? histogram() : service;
        }

        private void add(Kind other) {
            attempts += other.attempts;
            ok += other.ok;
            found += other.found;
            refused += other.refused;
            keys += other.keys;
            keyBytes += other.keyBytes;
            valueBytes += other.valueBytes;
            busyNs += other.busyNs;
            for (int i = 0; i < failed.length; i++) {
                failed[i] += other.failed[i];
            }
            service.add(other.service);
            if (response != service) {
                response.add(other.response);
            }
        }

        private void reset() {
            attempts = ok = found = refused = keys = keyBytes = valueBytes = busyNs = 0;
            Arrays.fill(failed, 0);
            service.reset();
            response.reset();
        }

        private JsonObject message(boolean looksUp) {
            JsonObject message = counts(looksUp);
            message.addProperty("response", encode(response));
            message.addProperty("service", encode(service));
            return message;
        }

        private JsonObject counts(boolean looksUp) {
            JsonObject message = new JsonObject();
            message.addProperty("attempts", attempts);
            message.addProperty("ok", ok);
            message.addProperty("hits", looksUp ? found : 0);
            message.addProperty("misses", looksUp ? keys - found : 0);
            message.addProperty("not_stored", refused);
            message.addProperty("wrong_values", failed[(int) -Verify.WRONG]);
            JsonObject errors = new JsonObject();
            for (int i = (int) -Verify.TIMEOUT; i < failed.length; i++) {
                if (failed[i] > 0) {
                    errors.addProperty(Verify.NAMES[i], failed[i]);
                }
            }
            message.add("errors", errors);
            message.addProperty("keys", keys);
            message.addProperty("value_bytes", valueBytes);
            message.addProperty("key_bytes", keyBytes);
            message.addProperty("busy_ns", busyNs);
            return message;
        }
    }
}
