package cachemark.jmh;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** The items of a tape: keys, the lengths of their values, and their expiry. */
record TapeData(byte[][] keys, int[] lengths, int exptimeS) {
    private static final int HOURS_2_S = 7200;

    /** Keys of 20 bytes, and values of one size. */
    static TapeData random(int count, int valueSize) {
        byte[][] keys = keys(count, k -> String.format(Locale.ROOT, "jmh-%016d", k));
        return new TapeData(keys, IntStream.range(0, count).map(k -> valueSize).toArray(), 0);
    }

    /** The items of memcached-java-clients-benchmark: a value has five bytes more than its key. */
    static TapeData original(int count) {
        byte[][] keys = keys(count, k -> "key" + k);
        int[] lengths = IntStream.range(0, count).map(k -> keys[k].length + 5).toArray();
        return new TapeData(keys, lengths, HOURS_2_S);
    }

    private static byte[][] keys(int count, IntFunction<String> name) {
        return IntStream.range(0, count)
                .mapToObj(name)
                .map(key -> key.getBytes(StandardCharsets.US_ASCII))
                .toArray(byte[][]::new);
    }

    int count() {
        return keys.length;
    }

    int keyBytes() {
        int sum = 0;
        for (byte[] key : keys) {
            sum += key.length;
        }
        return sum;
    }

    int longestValue() {
        return IntStream.of(lengths).max().orElse(0);
    }
}
