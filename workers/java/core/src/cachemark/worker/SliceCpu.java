package cachemark.worker;

import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * CPU time of this process in all slices, in the kernel's ticks. A slice is short, so a reading must
 * be cheap: the file stays open, and this class parses its bytes without any garbage.
 */
final class SliceCpu implements AutoCloseable {
    /** Where user time is among the fields after the program's name; system time follows. */
    private static final int USER_FIELD = 11;

    private final byte[] text = new byte[1024];
    private RandomAccessFile stat;
    private long userTicks;
    private long systemTicks;

    SliceCpu() {
        try {
            stat = new RandomAccessFile("/proc/self/stat", "r");
        } catch (IOException error) {
            stat = null; // no Linux
        }
    }

    void reset() {
        userTicks = 0;
        systemTicks = 0;
    }

    void begin() {
        add(-1);
    }

    void end() {
        add(1);
    }

    /** CPU time of all slices. */
    Cpu used() {
        return new Cpu(userTicks, systemTicks, 0);
    }

    @Override
    public void close() {
        try {
            if (stat != null) {
                stat.close();
            }
        } catch (IOException error) {
            System.err.println("/proc/self/stat: " + error);
        }
    }

    private void add(int sign) {
        if (stat == null) {
            return;
        }
        try {
            stat.seek(0);
            int length = stat.read(text);
            int at = 0;
            for (int i = 0; i < length; i++) {
                at = text[i] == ')' ? i : at;
            }
            for (int field = -1; field < USER_FIELD; at++) {
                field += text[at] == ' ' ? 1 : 0;
            }
            int afterUser = at;
            while (text[afterUser] != ' ') {
                afterUser++;
            }
            userTicks += sign * number(at);
            systemTicks += sign * number(afterUser + 1);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private long number(int from) {
        long number = 0;
        for (int i = from; text[i] != ' '; i++) {
            number = 10 * number + text[i] - '0';
        }
        return number;
    }
}
