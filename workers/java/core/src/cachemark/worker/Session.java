package cachemark.worker;

import java.util.concurrent.Future;

/** One open client of the library under test, for one caller or shared by several. */
public interface Session extends AutoCloseable {
    /** Make an operation and wait for its answer; see {@link Verify#of} for what to return. */
    Object call(Op op) throws Exception;

    /** Begin an operation, for libraries whose calls give futures. */
    default Future<?> begin(Op op) throws Exception {
        throw new UnsupportedOperationException();
    }

    /** Wait for an operation that was begun; the same answer as from `call`. */
    default Object end(Op op, Future<?> begun, long timeoutNs) throws Exception {
        throw new UnsupportedOperationException();
    }

    /** The fault kind of an exception of the library. */
    long failure(Throwable thrown);

    /** Send a command with a reply on each connection; the number of connections. */
    default int barrier() throws Exception {
        return 0;
    }

    @Override
    void close() throws Exception;
}
