package cachemark.worker;

/** The operations of a lane, one after the other. */
interface Script {
    /** The next operation; null at the end, which a looped script does not have. */
    Op next();

    /** Whether it has no operation at all. */
    boolean isEmpty();

    /** Put the last operation back: it comes next again. */
    void unread();

    /** The last operation's number in its lane. */
    int place();

    /** When the last operation is due, in ns from the window's start. */
    default long dueNs() {
        return 0;
    }

    /** The records of a lane from the first on, again and again. */
    final class Looped implements Script {
        private final Op[] ops;
        private final long[] times;
        private final long periodNs;
        private int at = -1;
        private long passNs;

        /** `times` and `periodNs` are for an open loop. */
        Looped(Op[] ops, long[] times, long periodNs) {
            this.ops = ops;
            this.times = times;
            this.periodNs = periodNs;
        }

        @Override
        public Op next() {
            if (++at >= ops.length) {
                if (ops.length == 0) {
                    return null;
                }
                at = 0;
                passNs += periodNs;
            }
            return ops[at].whole();
        }

        @Override
        public boolean isEmpty() {
            return ops.length == 0;
        }

        @Override
        public void unread() {
            at--;
        }

        @Override
        public int place() {
            return at;
        }

        @Override
        public long dueNs() {
            return passNs + times[at];
        }
    }

    /** Stores each of a lane's keys once; creates the operations one by one. */
    final class Prefill implements Script {
        private final Tape tape;
        private final int lanes;
        private long key;

        Prefill(Tape tape, int lane, int lanes) {
            this.tape = tape;
            this.lanes = lanes;
            key = lane;
        }

        @Override
        public Op next() {
            if (key >= tape.file.prefillCount) {
                return null;
            }
            Op op = tape.prefill((int) key);
            key += lanes;
            return op;
        }

        @Override
        public boolean isEmpty() {
            return key >= tape.file.prefillCount;
        }

        @Override
        public void unread() {
            key -= lanes;
        }

        @Override
        public int place() {
            return (int) (key / lanes) - 1;
        }
    }
}
