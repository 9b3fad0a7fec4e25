package cachemark.worker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** A tape for lanes: keys as strings for the libraries, values, operations. */
public final class Tape {
    private static final byte[] COUNTER = "1000000000".getBytes(StandardCharsets.US_ASCII);

    /** The generations that a read may bring, by the generation in its record. */
    static final int[][] RIGHT = {{0, 1, 2, 3}, {1, 2, 3}, {2, 1}, {3, 1}};

    /** The source of a value: kept from before, or cut from the pool now. */
    interface Values {
        byte[] value(int key, int length, int generation);
    }

    final TapeFile file;
    private final byte[] pool;
    private final String[] names;
    private final Map<Long, byte[]> kept = new HashMap<>();
    private volatile boolean anyGeneration;
    private long mayKeepBytes = Runtime.getRuntime().maxMemory() / 4;

    public Tape(Path path) throws IOException, TapeException {
        file = new TapeFile(path);
        pool = file.pool();
        names = new String[file.keyCount];
        for (int k = 0; k < names.length; k++) {
            names[k] = text(file.key(k));
        }
    }

    private static String text(byte[] key) {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(key))
                    .toString();
        } catch (CharacterCodingException error) {
            throw new Unsupported("keys that are no text: the libraries take strings");
        }
    }

    public int keyCount() {
        return file.keyCount;
    }

    /** The number of keys, from the first on, that the prefill stores. */
    public int prefillCount() {
        return file.prefillCount;
    }

    /** Whether anything on it expires. */
    public boolean expires() {
        boolean any = file.exptimeS > 0;
        for (int j = 0; j < file.opCount && !any; j++) {
            any = file.opExptime(j) > 0;
        }
        return any;
    }

    /** The kinds of operation on it. */
    Set<String> kinds() {
        Set<String> kinds = new TreeSet<>();
        for (int j = 0; j < file.opCount; j++) {
            kinds.add(Verb.kindName(file.verb(j).kind(file.noreply(j))));
        }
        return kinds;
    }

    /** Whether a batch names a key twice. */
    boolean repeats() {
        Set<Integer> seen = new HashSet<>();
        for (int j = 0; j < file.opCount; j++) {
            if (file.verb(j).batch) {
                seen.clear();
                for (int k : file.opKeys(j)) {
                    if (!seen.add(k)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    List<String> names(int[] indexes) {
        List<String> own = new ArrayList<>(indexes.length);
        for (int k : indexes) {
            own.add(names[k]);
        }
        return own;
    }

    int keyBytes(int[] indexes) {
        return Arrays.stream(indexes)
                .map(k -> file.keyOffset(k + 1) - file.keyOffset(k))
                .sum();
    }

    int lengths(int[] indexes) {
        return Arrays.stream(indexes).map(file::length).sum();
    }

    List<byte[]> batchValues(int[] indexes, Values cut) {
        List<byte[]> values = new ArrayList<>(indexes.length);
        for (int k : indexes) {
            values.add(cut.value(k, file.length(k), 0));
        }
        return values;
    }

    private int offset(int key, int length, int generation) {
        long at = Integer.toUnsignedLong(key) * 786_433 + length * 97L + generation * 262_147L;
        return (int) (at % (file.poolBytes - length + 1));
    }

    /** The value of a key at a length, in a generation. */
    byte[] value(int key, int length, int generation) {
        if (key >= file.firstCounter) {
            return COUNTER;
        }
        int at = offset(key, length, generation);
        return Arrays.copyOfRange(pool, at, at + length);
    }

    /** The value of a key in the prefill. */
    public byte[] prefilled(int key) {
        return value(key, file.length(key), 0);
    }

    /** From now on a read may bring any generation: a failed write may still arrive. */
    void acceptAnyGeneration() {
        anyGeneration = true;
    }

    /** Note a failed operation: a write may still arrive. */
    void noteFailure(long came) {
        if (came != Verify.WRONG) {
            acceptAnyGeneration();
        }
    }

    /** Whether a read may bring a value; `told` is the generation in its record. */
    boolean matches(int key, byte[] value, int told) {
        if (!file.verified) {
            return true;
        }
        if (value.length > file.poolBytes) {
            return false;
        }
        return is(key, value, told) || file.lanes > 0 && allows(key, value, told);
    }

    private boolean is(int key, byte[] value, int generation) {
        int at = offset(key, value.length, generation);
        return Arrays.equals(value, 0, value.length, pool, at, at + value.length);
    }

    private boolean allows(int key, byte[] value, int told) {
        for (int generation : RIGHT[anyGeneration ? 0 : told]) {
            if (is(key, value, generation)) {
                return true;
            }
        }
        return false;
    }

    /** A value that is cut once for all operations that write it; null if there are too many values. */
    private byte[] kept(int key, int length, int generation) {
        long which = (long) key << 33 | (long) generation << 31 | length;
        byte[] value = kept.get(which);
        if (value == null && mayKeepBytes >= length) {
            mayKeepBytes -= length;
            value = value(key, length, generation);
            kept.put(which, value);
        }
        return value;
    }

    private record Record(long head, long tail) {}

    /** The operations of each lane, in order, of `lanes` lanes in all from `first` on. */
    Op[][] scripts(int first, int count, int lanes) {
        Map<Record, Op> known = new HashMap<>();
        Op[][] scripts = new Op[count][];
        for (int t = 0; t < count; t++) {
            int[] numbers = numbers(first + t, lanes);
            scripts[t] = new Op[numbers.length];
            for (int i = 0; i < numbers.length; i++) {
                int j = numbers[i];
                Record record = new Record(file.head(j), file.tail(j));
                scripts[t][i] = known.computeIfAbsent(record, same -> op(j));
            }
        }
        return scripts;
    }

    private Op op(int j) {
        return new Op(
                this,
                file.verb(j),
                file.noreply(j),
                file.opKeys(j),
                file.opLength(j),
                file.opExptime(j),
                file.generation(j),
                this::kept);
    }

    /** When each operation of a lane is due, in ns from the start of a pass. */
    long[] times(int lane, int lanes) {
        return Arrays.stream(numbers(lane, lanes)).mapToLong(file::dueNs).toArray();
    }

    /** The records of a lane: groups stay together. */
    private int[] numbers(int lane, int lanes) {
        int[] numbers = new int[file.opCount];
        int count = 0;
        for (long first = (long) lane * file.group; first < file.opCount; first += (long) lanes * file.group) {
            for (int i = 0; i < file.group; i++) {
                numbers[count++] = (int) first + i;
            }
        }
        return Arrays.copyOf(numbers, count);
    }

    /** The write that stores a key in the prefill. */
    Op prefill(int key) {
        return new Op(this, Verb.SET, false, new int[] {key}, file.length(key), file.exptimeS, 0, this::value);
    }
}
