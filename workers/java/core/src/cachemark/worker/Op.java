package cachemark.worker;

import java.util.List;

/** One prepared operation of a lane, for client files. */
public final class Op {
    public final Verb verb;
    public final boolean noreply;
    /** Its key, or null if it has none or many. */
    public final String key;

    public final List<String> keys;
    /** The value that it writes, or null. */
    public final byte[] value;
    /** The values of a batch's keys, or null. */
    public final List<byte[]> values;

    public final int exptimeS;
    /** The amount by which it counts up or down. */
    public final long amount;

    final int kind;
    final int[] indexes;
    /** Its first key and the number of keys, in the object itself for the loop. */
    final int first;

    final int count;
    final int keyBytes;
    final int valueBytes;
    final Tape tape;
    /** The generation that it writes, or for a read the one of the lane's last write of the key before it. */
    final int generation;

    private final int length;
    private final boolean lacks;

    Op(
            Tape tape,
            Verb verb,
            boolean noreply,
            int[] indexes,
            int length,
            int exptimeS,
            int generation,
            Tape.Values cut) {
        this.generation = generation;
        this.tape = tape;
        this.verb = verb;
        this.noreply = noreply;
        this.indexes = indexes;
        count = indexes.length;
        first = count == 0 ? 0 : indexes[0];
        this.length = length;
        this.exptimeS = exptimeS;
        kind = verb.kind(noreply);
        keys = tape.names(indexes);
        key = count == 1 ? keys.get(0) : null;
        keyBytes = tape.keyBytes(indexes);
        amount = verb.counts ? Integer.toUnsignedLong(length) : 0;
        valueBytes = !verb.writes ? 0 : verb == Verb.MSET ? tape.lengths(indexes) : length;
        boolean writesOne = verb.writes && verb != Verb.MSET;
        value = writesOne ? cut.value(indexes[0], length, generation) : null;
        values = verb == Verb.MSET ? tape.batchValues(indexes, cut) : null;
        lacks = writesOne && value == null || values != null && values.contains(null);
    }

    /** This operation with its values; itself if it has them already. */
    Op whole() {
        return lacks ? new Op(tape, verb, noreply, indexes, length, exptimeS, generation, tape::value) : this;
    }

    /** The number of its keys, and each key's number on the tape. */
    public int count() {
        return count;
    }

    public int index(int position) {
        return position == 0 ? first : indexes[position];
    }
}
