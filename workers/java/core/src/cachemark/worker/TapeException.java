package cachemark.worker;

/** A file that is no tape: the failed check and its place. */
final class TapeException extends Exception {
    TapeException(String what, long at) {
        super("not a tape: " + what + " (at byte " + at + ")");
    }
}
