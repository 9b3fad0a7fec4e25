package cachemark.worker;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The result of an operation, as one number that the loop can note quickly.
 *
 * <p>0 or more: the operation is done; the low 17 bits are the keys found, the next bit says that the
 * server refused it (add, replace, cas), the higher bits are the value bytes read or written.
 * Negative: it failed.
 */
public final class Verify {
    public static final long WRONG = -1;
    public static final long TIMEOUT = -2;
    public static final long CONNECTION = -3;
    public static final long SERVER = -4;
    public static final long CLIENT = -5;
    public static final long PROTOCOL = -6;

    static final String[] NAMES = {"", "wrong", "timeout", "connection", "server", "client", "protocol"};
    static final long FOUND_MASK = (1 << 17) - 1;
    static final long REFUSED = 1 << 17;
    static final int SIZE_BIT = 18;

    /** The value of an item with other flags than 0: it equals no value of the tape. */
    private static final byte[] OTHER_FLAGS = "other flags than 0".getBytes(StandardCharsets.US_ASCII);

    private Verify() {}

    /** A value that was read, if its flags are 0, as in all items of cachemark. */
    public static byte[] plain(byte[] value, int flags) {
        return flags == 0 ? value : OTHER_FLAGS;
    }

    /** Client files throw this for a failure that the library does not throw itself. */
    public static final class Failure extends Exception {
        public final long outcome;

        public Failure(long outcome) {
            super(NAMES[(int) -outcome], null, false, false);
            this.outcome = outcome;
        }
    }

    /** The value that a cas read, and whether it stored: not if the key was changed or deleted since. */
    public record Swap(byte[] read, boolean stored) {}

    /** The result of a call: its answer, verified, or the exception. Throws OwnError. */
    static long of(Object answer, Throwable failure, Op op, Session session) {
        if (failure == null) {
            return of(answer, op);
        }
        OwnError.check(failure);
        return session.failure(failure);
    }

    /**
     * The outcome of an answer that came without an exception.
     *
     * @param answer for get, gets, gat the value or null; for mget a map of those found; for
     *     delete, touch whether there was such a key; for incr, decr the number or null; for cas a
     *     Swap or null; otherwise whether it was stored
     */
    public static long of(Object answer, Op op) {
        long written = (long) op.valueBytes << SIZE_BIT;
        switch (op.verb) {
            case GET, GETS, GAT:
                return answer == null ? 0 : read(op, 0, (byte[]) answer);
            case MGET:
                return readMany(op, (Map<?, ?>) answer);
            case CAS:
                return answer == null ? 0 : swapped(op, (Swap) answer, written);
            case DELETE, TOUCH:
                return answer == Boolean.TRUE && !op.noreply ? 1 : 0;
            case INCR, DECR:
                return answer != null && !op.noreply ? 1 : 0;
            case ADD, REPLACE:
                return answer == Boolean.TRUE || op.noreply ? written : written | REFUSED;
            default:
                return answer == Boolean.TRUE ? written : SERVER;
        }
    }

    /** Whether all of its keys were found, and its value was stored. */
    static boolean whole(long outcome, Op op) {
        boolean found = !op.verb.looks || (outcome & FOUND_MASK) == op.count;
        return outcome >= 0 && found && (outcome & REFUSED) == 0;
    }

    /** The name of an incomplete outcome. */
    static String text(long outcome) {
        if (outcome < 0) {
            return outcome == WRONG ? "a wrong value" : "an error of kind " + NAMES[(int) -outcome];
        }
        return (outcome & REFUSED) != 0 ? "not stored" : "not found";
    }

    private static long read(Op op, int position, byte[] value) {
        // The record tells the generation of the first key.
        boolean right = op.tape.matches(op.index(position), value, position == 0 ? op.generation : 0);
        return right ? (long) value.length << SIZE_BIT | 1 : WRONG;
    }

    private static long readMany(Op op, Map<?, ?> values) {
        long sum = 0;
        for (int i = 0; i < op.count; i++) {
            Object value = values.get(op.keys.get(i));
            long one = value == null ? 0 : read(op, i, (byte[]) value);
            if (one < 0) {
                return WRONG;
            }
            sum += one;
        }
        return (sum & FOUND_MASK) == values.size() ? sum : WRONG;
    }

    private static long swapped(Op op, Swap swap, long written) {
        if (!op.tape.matches(op.first, swap.read, 0)) {
            return WRONG;
        }
        return swap.stored ? written | 1 : written | REFUSED | 1;
    }
}
