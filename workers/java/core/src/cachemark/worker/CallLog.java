package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;

/** The calls of one lane in an open loop, for a call log (docs/call-log.md). */
final class CallLog {
    private static final int RECORD_BYTES = 32;
    private static final int MOST_RECORDS = 1 << 20;
    private static final int MOST_WRONG_REPLIES = 16;
    private static final int MOST_WRONG_BYTES = 4096;
    private static final byte OK = 0;
    private static final byte MISS = 1;

    private final ByteBuffer records;
    private final int caller;
    private final int group;
    private final int lane;
    private final int lanes;
    private final JsonArray wrong = new JsonArray();
    /** Other threads read this while the lane plays, even while a call hangs. */
    private volatile int bytes;

    /** Memory for the calls of a caller, which plays a lane of a tape with groups. */
    CallLog(int caller, int callers, int group, int lane, int lanes) {
        int most = RECORD_BYTES * (MOST_RECORDS / callers);
        records = ByteBuffer.allocate(most).order(ByteOrder.LITTLE_ENDIAN);
        this.caller = caller;
        this.group = group;
        this.lane = lane;
        this.lanes = lanes;
    }

    /** Note a call that has ended; `place` is its operation's number in the lane. */
    void note(Op op, int place, Object answer, long outcome, long began, long now) {
        int at = bytes;
        if (at == records.capacity()) {
            return;
        }
        int number = (place / group * lanes + lane) * group + place % group;
        records.putLong(at, began);
        records.putLong(at + 8, now - began);
        records.putInt(at + 16, number);
        records.putInt(at + 20, outcome < 0 ? 0 : (int) (outcome >>> Verify.SIZE_BIT));
        records.putShort(at + 24, (short) caller);
        records.put(at + 26, logged(op, outcome));
        bytes = at + RECORD_BYTES;
        if (outcome == Verify.WRONG && wrong.size() < MOST_WRONG_REPLIES) {
            byte[] value = wrongValue(op, answer);
            JsonObject reply = new JsonObject();
            reply.addProperty("record", number);
            reply.addProperty(
                    "value",
                    Base64.getEncoder().encodeToString(Arrays.copyOf(value, Math.min(value.length, MOST_WRONG_BYTES))));
            wrong.add(reply);
        }
    }

    /** The outcome of a call in the log: failures have the order of their codes. */
    private static byte logged(Op op, long outcome) {
        if (outcome < 0) {
            return (byte) (MISS - outcome);
        }
        boolean reads =
                switch (op.verb) {
                    case GET, GETS, MGET, GAT -> true;
                    default -> false;
                };
        return reads && (outcome & Verify.FOUND_MASK) == 0 ? MISS : OK;
    }

    private static byte[] wrongValue(Op op, Object answer) {
        if (answer instanceof Map<?, ?> values) {
            for (Map.Entry<?, ?> each : values.entrySet()) {
                int at = op.keys.indexOf(each.getKey());
                byte[] value = (byte[]) each.getValue();
                if (at < 0 || !op.tape.matches(op.index(at), value, 0)) {
                    return value;
                }
            }
        }
        byte[] read = answer instanceof Verify.Swap swap ? swap.read() : new byte[0];
        return answer instanceof byte[] value ? value : read;
    }

    /** Write the calls of all lanes that have a log. */
    static void write(Path path, Lane[] lanes) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        header.put("CMCALLS\0".getBytes(StandardCharsets.US_ASCII)).putInt(1).putInt(RECORD_BYTES);
        try (OutputStream file = Files.newOutputStream(path)) {
            file.write(header.array());
            for (Lane lane : lanes) {
                if (lane.calls != null) {
                    file.write(lane.calls.records.array(), 0, lane.calls.bytes);
                }
            }
        }
    }

    /** The first wrong values of all lanes, for the message. */
    static JsonArray wrongReplies(Lane[] lanes) {
        JsonArray first = new JsonArray();
        for (Lane lane : lanes) {
            for (int i = 0; lane.calls != null && i < lane.calls.wrong.size(); i++) {
                if (first.size() < MOST_WRONG_REPLIES) {
                    first.add(lane.calls.wrong.get(i));
                }
            }
        }
        return first;
    }
}
