package cachemark.worker;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import org.HdrHistogram.Histogram;

/** The times of whole groups of the tape (docs/tape.md). A lane notes operations in the order of its calls. */
final class Groups {
    /** For a prefill, or for a tape whose groups are not timed. */
    static final Groups NONE = new Groups(0);

    private final int length;
    private final Histogram times;
    /** The next operation's place in its group. */
    private int place;

    private long beganNs;
    /** All operations of the group so far were right and count. */
    private boolean whole;
    /** Operations that ended in another order than their calls began. */
    private int outOfOrder;

    static Groups of(TapeFile tape) {
        return tape.group > 1 && !tape.openLoop ? new Groups(tape.group) : NONE;
    }

    private Groups(int length) {
        this.length = length;
        times = length > 0 ? Recorder.histogram() : null;
    }

    /** Forget everything; the memory stays. */
    void reset() {
        if (this != NONE) {
            times.reset();
            place = 0;
            outOfOrder = 0;
        }
    }

    /** Note an operation: whether it was right and counts, its begin and its end. */
    void note(boolean ok, long began, long now) {
        if (this == NONE) {
            return;
        }
        if (place == 0) {
            beganNs = began;
            whole = true;
        }
        whole &= ok && outOfOrder == 0;
        if (outOfOrder > 0) {
            outOfOrder--;
        }
        if (++place < length) {
            return;
        }
        place = 0;
        if (whole) {
            Recorder.record(times, now - beganNs);
        }
    }

    /** A call that could not begin is noted next, before `older` older ones: their groups do not count. */
    void notedBefore(int older) {
        if (this != NONE) {
            outOfOrder = Math.max(outOfOrder, older + 1);
        }
    }

    /** A slice begins: a group that the last slice has cut does not count. */
    void cut() {
        if (this != NONE) {
            whole = false;
        }
    }

    /** The groups of all lanes for the message, added to the first lane's. */
    static JsonElement message(Lane[] own) {
        Groups sum = own[0].slice.groups;
        if (sum == NONE) {
            return JsonNull.INSTANCE;
        }
        for (int t = 1; t < own.length; t++) {
            sum.times.add(own[t].slice.groups.times);
        }
        JsonObject message = new JsonObject();
        message.addProperty("length", sum.length);
        message.addProperty("ok", sum.times.getTotalCount());
        message.addProperty("time", Recorder.encode(sum.times));
        return message;
    }
}
