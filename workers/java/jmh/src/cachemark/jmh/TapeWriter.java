package cachemark.jmh;

import cachemark.worker.Verb;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * Writes a tape (docs/tape.md) of one kind of operation on keys drawn evenly, or of groups that set and
 * get four keys in turn, so that the client files get the same input from JMH as from the worker. The
 * same arguments give the same bytes.
 */
final class TapeWriter {
    private static final Set<Verb> VERBS =
            Set.of(Verb.GET, Verb.GETS, Verb.GAT, Verb.MGET, Verb.SET, Verb.REPLACE, Verb.TOUCH);
    private static final String SET_GET = "set-get";
    /** The keys of a group of set-get. */
    private static final int GROUP_KEYS = 4;

    private static final int HEADER_BYTES = 184;
    private static final int RECORDS = 1 << 16;
    private static final int BATCHES = 1 << 13;
    private static final int POOL_SPARE_BYTES = 1 << 20;
    private static final int TOUCH_S = 3600;

    private final TapeData data;
    private final ByteBuffer out;
    private final int pool;
    private int end = HEADER_BYTES;

    private TapeWriter(TapeData data, int records, int runs) {
        this.data = data;
        pool = data.longestValue() + POOL_SPARE_BYTES;
        long bytes = HEADER_BYTES
                + 4L * (data.count() + 1)
                + data.keyBytes()
                + 4L * data.count()
                + pool
                + 16L * records
                + 4L * runs
                + 8 * 6;
        if (bytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("a tape of more than 2 GiB");
        }
        out = ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** `batch`: the keys of an mget. `sameKeys`: each group of set-get has the first four keys. */
    static void write(Path path, String operation, TapeData data, int batch, boolean sameKeys) throws IOException {
        boolean groups = operation.equals(SET_GET);
        Verb verb = groups ? Verb.SET : verb(operation);
        boolean many = verb == Verb.MGET;
        int least = groups ? GROUP_KEYS : many ? batch : 1;
        if (batch < 1 || data.count() < least) {
            throw new IllegalArgumentException("a " + operation + " needs " + least + " keys");
        }
        int records = many ? BATCHES : RECORDS;
        int runs = many ? BATCHES * batch : 0;
        TapeWriter tape = new TapeWriter(data, records, runs);
        SplittableRandom draw = new SplittableRandom(1);
        int ops = tape.items(draw, records, runs, groups ? 2 * GROUP_KEYS : 1);
        int runsAt = tape.section(128, 4 * runs);
        for (int j = 0; j < records; j++) {
            if (groups) {
                tape.groupRecord(ops + 16 * j, j, sameKeys);
            } else {
                int key = many ? tape.run(draw, runsAt, j, batch) : draw.nextInt(data.count());
                tape.record(ops + 16 * j, verb, many ? batch : 1, key);
            }
        }
        Files.write(path, tape.out.array());
    }

    private static Verb verb(String operation) {
        for (Verb verb : VERBS) {
            if (verb.name().toLowerCase(Locale.ROOT).equals(operation)) {
                return verb;
            }
        }
        throw new IllegalArgumentException(
                "no operation " + operation + "; one of get, gets, gat," + " mget, set, replace, touch, set-get");
    }

    /** Write the header, the keys and the values; returns the offset of the records. */
    private int items(SplittableRandom draw, int records, int runs, int group) {
        int keys = data.count();
        out.put(0, new byte[] {'C', 'M', 'T', 'A', 'P', 'E'});
        out.putInt(8, 2).putInt(12, HEADER_BYTES).putLong(16, out.capacity()).putLong(24, 1);
        out.putLong(32, keys).putLong(40, keys).putLong(48, records).putLong(56, runs);
        out.putLong(64, pool).putLong(96, data.keyBytes()).putLong(144, data.exptimeS());
        out.putLong(160, group);
        int offsets = section(80, 4 * (keys + 1));
        int names = section(88, data.keyBytes());
        int lengths = section(104, 4 * keys);
        int offset = 0;
        for (int k = 0; k < keys; k++) {
            byte[] key = data.keys()[k];
            out.putInt(offsets + 4 * k, offset);
            out.put(names + offset, key);
            out.putInt(lengths + 4 * k, data.lengths()[k]);
            offset += key.length;
        }
        out.putInt(offsets + 4 * keys, offset);
        byte[] values = new byte[pool];
        draw.nextBytes(values);
        out.put(section(112, pool), values);
        return section(120, 16 * records);
    }

    /** Set a section's place in the header, aligned to eight bytes; returns the place. */
    private int section(int field, int bytes) {
        int at = (end + 7) / 8 * 8;
        out.putLong(field, at);
        end = at + bytes;
        return at;
    }

    /** Draw the keys of a batch, each at most once; returns its place in the run table. */
    private int run(SplittableRandom draw, int runsAt, int batch, int run) {
        Set<Integer> drawn = new LinkedHashSet<>();
        while (drawn.size() < run) {
            drawn.add(draw.nextInt(data.count()));
        }
        int first = batch * run;
        int at = runsAt + 4 * first;
        for (int key : drawn) {
            out.putInt(at, key);
            at += 4;
        }
        return first;
    }

    /** Record j of groups: set and get of a first key, then of a second, and so on. */
    private void groupRecord(int at, int j, boolean sameKeys) {
        int position = j / 2 % GROUP_KEYS;
        int first = sameKeys ? 0 : j / (2 * GROUP_KEYS) * GROUP_KEYS;
        record(at, j % 2 == 0 ? Verb.SET : Verb.GET, 1, (first + position) % data.count());
    }

    private void record(int at, Verb verb, int run, int key) {
        boolean writes = verb == Verb.SET || verb == Verb.REPLACE;
        boolean touches = verb == Verb.TOUCH || verb == Verb.GAT;
        int exptimeS = writes ? data.exptimeS() : touches ? TOUCH_S : 0;
        out.put(at, (byte) verb.number).putShort(at + 2, (short) run).putInt(at + 4, key);
        out.putInt(at + 8, writes ? data.lengths()[key] : 0).putInt(at + 12, exptimeS);
    }
}
