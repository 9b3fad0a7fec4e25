package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Arrays;

/**
 * The timeline of a window: the operations that ended in each of a thousand slices; a hundred slices
 * are a section. All memory is allocated before the window; an operation costs a comparison and two
 * additions.
 */
final class Timeline {
    static final int SECTIONS = 10;
    private static final int SECTION_SLICES = 100;
    private static final int SLICES = SECTIONS * SECTION_SLICES;
    /** Operations that end after a late open loop's window have slices too; the last the rest. */
    private static final int MAX_SLICES = 4 * SLICES;

    private final long[] ok = new long[MAX_SLICES];
    private final long[] responseNs = new long[MAX_SLICES];
    private long startNs;
    /** 0: the window ends by a number of operations and has no slices. */
    private long sliceNs;

    private int at;
    /** The end of the current slice, from the start. */
    private long lengthNs;

    /** Clear it, with the same memory. `durationNs` is 0 for a window without a duration. */
    void reset(long startNs, long durationNs) {
        this.startNs = startNs;
        sliceNs = durationNs / SLICES;
        lengthNs = sliceNs == 0 ? Long.MAX_VALUE : sliceNs;
        at = 0;
        Arrays.fill(ok, 0);
        Arrays.fill(responseNs, 0);
    }

    /** Whether the current slice has ended. */
    boolean ended(long nowNs) {
        return nowNs - startNs >= lengthNs;
    }

    /** Go on to the slice of an instant; returns the number of its section. */
    int advance(long nowNs) {
        at = (int) Math.min((nowNs - startNs) / sliceNs, MAX_SLICES - 1);
        lengthNs = at == MAX_SLICES - 1 ? Long.MAX_VALUE : (at + 1) * sliceNs;
        return section(at);
    }

    private static int section(int slice) {
        return Math.min(slice / SECTION_SLICES, SECTIONS - 1);
    }

    void note(long tookNs) {
        ok[at]++;
        responseNs[at] += tookNs;
    }

    void add(Timeline other) {
        at = Math.max(at, other.at);
        for (int i = 0; i <= other.at; i++) {
            ok[i] += other.ok[i];
            responseNs[i] += other.responseNs[i];
        }
    }

    /** The field of `done`; null without slices. */
    JsonObject message() {
        if (sliceNs == 0) {
            return null;
        }
        JsonObject message = new JsonObject();
        message.addProperty("slice_ns", sliceNs);
        message.add("ok", numbers(ok, at + 1));
        message.add("response_ns", numbers(responseNs, at + 1));
        return message;
    }

    /** The field `sections` without its histograms; null without sections. */
    JsonObject sections() {
        if (sliceNs == 0) {
            return null;
        }
        long[] sums = new long[SECTIONS];
        for (int i = 0; i <= at; i++) {
            sums[section(i)] += ok[i];
        }
        JsonObject sections = new JsonObject();
        sections.addProperty("length_ns", sliceNs * SECTION_SLICES);
        sections.add("ok", numbers(sums, SECTIONS));
        return sections;
    }

    private static JsonArray numbers(long[] values, int count) {
        JsonArray array = new JsonArray();
        Arrays.stream(values, 0, count).forEach(array::add);
        return array;
    }
}
