package cachemark.jmh;

import cachemark.worker.Verb;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * Writes a tape of one kind of operation on keys drawn evenly, as docs/tape.md says, so that the
 * client files have under JMH what they have in the worker. The same arguments give the same bytes.
 */
final class TapeWriter {
    private static final Set<Verb> VERBS = Set.of(Verb.GET, Verb.GETS, Verb.GAT, Verb.MGET,
            Verb.SET, Verb.REPLACE, Verb.TOUCH);
    private static final String KEY = "jmh-%016d"; // 20 bytes
    private static final int KEY_BYTES = 20;
    private static final int HEADER_BYTES = 184;
    private static final int RECORDS = 1 << 16;
    private static final int BATCHES = 1 << 13;
    private static final int POOL_SPARE_BYTES = 1 << 20;
    private static final int EXPTIME_S = 3600;

    private final ByteBuffer out;
    private int end = HEADER_BYTES;

    private TapeWriter(int bytes) {
        out = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static void write(Path path, String operation, int keys, int valueSize, int batch)
            throws IOException {
        Verb verb = verb(operation);
        boolean many = verb == Verb.MGET;
        if (keys < 1 || valueSize < 0 || batch < 1 || many && batch > keys) {
            throw new IllegalArgumentException("keys, valueSize or batch cannot be that");
        }
        int records = many ? BATCHES : RECORDS;
        int runs = many ? BATCHES * batch : 0;
        int pool = valueSize + POOL_SPARE_BYTES;
        long bytes = HEADER_BYTES + 4L * (keys + 1) + (KEY_BYTES + 4L) * keys + pool + 16L * records
                + 4L * runs + 8 * 6;
        if (bytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("a tape of more than 2 GiB");
        }
        TapeWriter tape = new TapeWriter((int) bytes);
        tape.fill(verb, keys, valueSize, many ? batch : 1, records, runs, pool);
        Files.write(path, tape.out.array());
    }

    private static Verb verb(String operation) {
        for (Verb verb : VERBS) {
            if (verb.name().toLowerCase(Locale.ROOT).equals(operation)) {
                return verb;
            }
        }
        throw new IllegalArgumentException("no operation " + operation + "; one of get, gets, gat,"
                + " mget, set, replace, touch");
    }

    private void fill(Verb verb, int keys, int valueSize, int run, int records, int runs, int pool) {
        SplittableRandom draw = new SplittableRandom(1);
        out.put(0, new byte[] {'C', 'M', 'T', 'A', 'P', 'E'});
        out.putInt(8, 2).putInt(12, HEADER_BYTES).putLong(16, out.capacity()).putLong(24, 1);
        out.putLong(32, keys).putLong(40, keys).putLong(48, records).putLong(56, runs);
        out.putLong(64, pool).putLong(96, (long) keys * KEY_BYTES).putLong(160, 1);
        int at = section(80, 4 * (keys + 1));
        for (int k = 0; k <= keys; k++) {
            out.putInt(at + 4 * k, k * KEY_BYTES);
        }
        at = section(88, keys * KEY_BYTES);
        for (int k = 0; k < keys; k++) {
            String key = String.format(Locale.ROOT, KEY, k);
            out.put(at + k * KEY_BYTES, key.getBytes(StandardCharsets.US_ASCII));
        }
        at = section(104, 4 * keys);
        for (int k = 0; k < keys; k++) {
            out.putInt(at + 4 * k, valueSize);
        }
        byte[] values = new byte[pool];
        draw.nextBytes(values);
        out.put(section(112, pool), values);
        at = section(120, 16 * records);
        int runsAt = section(128, 4 * runs);
        for (int j = 0; j < records; j++) {
            int key = runs == 0 ? draw.nextInt(keys) : run(draw, keys, runsAt, j, run);
            record(at + 16 * j, verb, run, key, valueSize);
        }
    }

    /** Set a section's place in the header, eight bytes aligned; where it is. */
    private int section(int field, int bytes) {
        int at = (end + 7) / 8 * 8;
        out.putLong(field, at);
        end = at + bytes;
        return at;
    }

    /** Draw the keys of a batch, none of them twice; where it is in the run table. */
    private int run(SplittableRandom draw, int keys, int runsAt, int batch, int run) {
        Set<Integer> drawn = new LinkedHashSet<>();
        while (drawn.size() < run) {
            drawn.add(draw.nextInt(keys));
        }
        int first = batch * run;
        int at = runsAt + 4 * first;
        for (int key : drawn) {
            out.putInt(at, key);
            at += 4;
        }
        return first;
    }

    private void record(int at, Verb verb, int run, int key, int valueSize) {
        boolean writes = verb == Verb.SET || verb == Verb.REPLACE;
        boolean touches = verb == Verb.TOUCH || verb == Verb.GAT;
        out.put(at, (byte) verb.number).putShort(at + 2, (short) run).putInt(at + 4, key);
        out.putInt(at + 8, writes ? valueSize : 0).putInt(at + 12, touches ? EXPTIME_S : 0);
    }
}
