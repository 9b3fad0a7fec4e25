package cachemark.worker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** A tape's bytes, with all checks of docs/tape.md made once, so that later reads need none. */
final class TapeFile {
    static final int HEADER_BYTES = 184;
    static final int OP_BYTES = 16;
    private static final int KEY_BYTES_MAX = 250;
    private static final int COUNTER_BYTES = 10;

    final int keyCount;
    final int prefillCount;
    final int opCount;
    final int runCount;
    final int poolBytes;
    final long periodNs;
    final int exptimeS;
    final boolean verified;
    /** The number of lanes that the generations are for; 0: there are none. */
    final long lanes;

    final boolean openLoop;
    /** Whether callers think between operations. */
    final boolean thinks;

    final int group;
    /** The first counter among the keys; the number of keys without one. */
    final int firstCounter;

    private final ByteBuffer bytes;
    private final int offsetsAt;
    private final int keysAt;
    private final int lengthsAt;
    private final int poolAt;
    private final int opsAt;
    private final int runsAt;
    private final int timesAt;

    TapeFile(Path path) throws IOException, TapeException {
        try (FileChannel file = FileChannel.open(path)) {
            if (file.size() > Integer.MAX_VALUE) {
                throw new Unsupported("a tape of more than 2 GiB");
            }
            bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
            bytes.order(ByteOrder.LITTLE_ENDIAN);
        }
        check(bytes.capacity() >= HEADER_BYTES, "shorter than a header", bytes.capacity());
        check(bytes.getLong(0) == 0x0000_4550_4154_4d43L, "it does not begin with CMTAPE", 0);
        check(bytes.getInt(8) == 2, "version " + bytes.getInt(8) + ", this worker reads 2", 8);
        check(bytes.getInt(12) == HEADER_BYTES, "wrong header length", 12);
        check(bytes.getLong(16) == bytes.capacity(), "another length than it says", 16);
        keyCount = count(32, 1, "no possible number of keys");
        prefillCount = count(40, 0, "no possible number of keys to store");
        opCount = count(48, 1, "no possible number of operations");
        runCount = count(56, 0, "no possible run table");
        poolBytes = count(64, 0, "no possible pool");
        periodNs = bytes.getLong(72);
        check(prefillCount <= keyCount, "more keys to store than there are", 40);
        long exptime = bytes.getLong(144);
        check(exptime >>> 32 == 0, "an expiry time too large", 144);
        exptimeS = expiry(exptime);
        long flags = flags();
        verified = (flags & 1) == 0;
        lanes = flags >>> 32;
        group = count(160, 1, "groups of no possible size");
        check(opCount % group == 0, "groups that do not fill it", 160);
        int counters = count(168, 0, "no possible number of counters");
        check(counters <= keyCount, "more counters than keys", 168);
        thinks = bytes.getLong(176) != 0;
        firstCounter = keyCount - counters;
        openLoop = bytes.getLong(136) != 0;
        check(openLoop == (periodNs != 0), "times without a period, or a period without times", 72);
        check(!openLoop || !thinks, "both times and think times", 176);
        int keyBytes = count(96, 0, "no possible length of keys");
        offsetsAt = section(80, keyCount + 1L, 4);
        keysAt = section(88, keyBytes, 1);
        lengthsAt = section(104, keyCount, 4);
        poolAt = section(112, poolBytes, 1);
        opsAt = section(120, opCount, OP_BYTES);
        runsAt = section(128, runCount, 4);
        timesAt = openLoop ? section(136, opCount, 8) : 0;
        if (thinks) {
            section(176, opCount, 8);
        }
        checkKeys(keyBytes);
        checkRecords();
        checkTimes();
    }

    private long flags() throws TapeException {
        long flags = bytes.getLong(152);
        check((flags & 0xffff_fffeL) == 0, "unknown flags", 152);
        return flags;
    }

    int keyOffset(int k) {
        return bytes.getInt(offsetsAt + 4 * k);
    }

    byte[] key(int k) {
        byte[] key = new byte[keyOffset(k + 1) - keyOffset(k)];
        bytes.get(keysAt + keyOffset(k), key);
        return key;
    }

    /** The length of the value of a key. */
    int length(int k) {
        return bytes.getInt(lengthsAt + 4 * k);
    }

    byte[] pool() {
        byte[] pool = new byte[poolBytes];
        bytes.get(poolAt, pool);
        return pool;
    }

    Verb verb(int j) {
        return Verb.of(bytes.get(opsAt + OP_BYTES * j));
    }

    boolean noreply(int j) {
        return (bytes.get(opsAt + OP_BYTES * j + 1) & 1) == 1;
    }

    /** The generation of a write's value, or for a read of the lane's last write of the key before it. */
    int generation(int j) {
        return bytes.get(opsAt + OP_BYTES * j + 1) >> 1;
    }

    /** A record as two numbers: equal ones are the same operation. */
    long head(int j) {
        return bytes.getLong(opsAt + OP_BYTES * j);
    }

    long tail(int j) {
        return bytes.getLong(opsAt + OP_BYTES * j + 8);
    }

    int opLength(int j) {
        return bytes.getInt(opsAt + OP_BYTES * j + 8);
    }

    int opExptime(int j) {
        return expiry(bytes.getInt(opsAt + OP_BYTES * j + 12));
    }

    /** The keys that a record names. */
    int[] opKeys(int j) {
        int run = Short.toUnsignedInt(bytes.getShort(opsAt + OP_BYTES * j + 2));
        int key = bytes.getInt(opsAt + OP_BYTES * j + 4);
        int[] keys = new int[run];
        for (int i = 0; i < run; i++) {
            keys[i] = verb(j).batch ? bytes.getInt(runsAt + 4 * (key + i)) : key;
        }
        return keys;
    }

    long dueNs(int j) {
        return openLoop ? bytes.getLong(timesAt + 8 * j) : 0;
    }

    private static void check(boolean holds, String what, long at) throws TapeException {
        if (!holds) {
            throw new TapeException(what, at);
        }
    }

    private int count(int at, int least, String what) throws TapeException {
        long count = bytes.getLong(at);
        check(count >= least && count <= Integer.MAX_VALUE - 1, what, at);
        return (int) count;
    }

    private static int expiry(long exptime) {
        if (exptime != (int) exptime || exptime < 0) {
            throw new Unsupported("expiry times beyond 2^31 seconds: the libraries take an int");
        }
        return (int) exptime;
    }

    private int section(int field, long entries, int size) throws TapeException {
        long at = bytes.getLong(field);
        boolean inside =
                at >= HEADER_BYTES && at <= bytes.capacity() && at % 8 == 0 && entries * size <= bytes.capacity() - at;
        check(inside, "a section lies outside the file", field);
        return (int) at;
    }

    private void checkKeys(int keyBytes) throws TapeException {
        int before = 0;
        for (int k = 0; k <= keyCount; k++) {
            int offset = keyOffset(k);
            int at = offsetsAt + 4 * k;
            boolean ordered = offset >= before && offset <= keyBytes && (k > 0 || offset == 0);
            check(ordered, "key offset " + k + " is out of order", at);
            boolean long0 = k > 0 && (offset == before || offset - before > KEY_BYTES_MAX);
            check(!long0, "key " + (k - 1) + " is of " + (offset - before) + " bytes", at);
            before = offset;
        }
        for (int at = keysAt; at < keysAt + keyBytes; at++) {
            int letter = Byte.toUnsignedInt(bytes.get(at));
            check(letter > ' ' && letter != 127, "a key holds a space or control character", at);
        }
        for (int k = 0; k < keyCount; k++) {
            int length = length(k);
            boolean fits = length >= 0 && length <= poolBytes;
            check(fits, "the value of key " + k + " is longer than the pool", lengthsAt + 4L * k);
            boolean digits = k < firstCounter || length == COUNTER_BYTES;
            check(digits, "counter " + k + " is not of ten digits", lengthsAt + 4L * k);
        }
        for (int r = 0; r < runCount; r++) {
            int key = bytes.getInt(runsAt + 4 * r);
            boolean known = key >= 0 && key < keyCount;
            check(known, "run entry " + r + " names no key", runsAt + 4L * r);
        }
    }

    private void checkRecords() throws TapeException {
        for (int j = 0; j < opCount; j++) {
            int at = opsAt + OP_BYTES * j;
            Verb verb = bytes.get(at) < 0 ? null : Verb.of(bytes.get(at));
            check(verb != null, "record " + j + " has unknown verb " + bytes.get(at), at);
            int flags = bytes.get(at + 1);
            boolean mayHave = lanes > 0 && flags >> 1 < Tape.RIGHT.length && verb.hasGeneration();
            boolean flagged = ((flags & 1) == 0 || verb.quiet) && (flags >> 1 == 0 || flags > 0 && mayHave);
            check(flagged, "record " + j + " has unknown flags", at + 1);
            long run = Short.toUnsignedLong(bytes.getShort(at + 2));
            long key = Integer.toUnsignedLong(bytes.getInt(at + 4));
            boolean there = verb == Verb.VERSION
                    ? run == 0
                    : verb.batch ? run >= 1 && key + run <= runCount : run == 1 && key < keyCount;
            check(there, "record " + j + " names a key that is not there", at + 4);
            long length = Integer.toUnsignedLong(bytes.getInt(at + 8));
            boolean fits = verb.counts || length <= poolBytes;
            check(fits, "record " + j + " is longer than the pool", at + 8);
            for (int k : opKeys(j)) {
                boolean suits = verb == Verb.DELETE || verb.counts == k >= firstCounter;
                check(suits, "record " + j + " counts what is no counter, or the other way", at + 4);
            }
        }
    }

    private void checkTimes() throws TapeException {
        long before = 0;
        for (int j = 0; openLoop && j < opCount; j++) {
            long due = dueNs(j);
            boolean ordered = due >= before && due < periodNs;
            check(ordered, "record " + j + " is due out of order", timesAt + 8L * j);
            before = due;
        }
    }
}
