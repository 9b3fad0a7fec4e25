package cachemark.worker;

/** A mistake in this worker's own code, such as a client file; not a failure of the library. */
final class OwnError extends RuntimeException {
    private OwnError(Throwable mistake) {
        super(describe(mistake), mistake);
    }

    /** Throw an OwnError for an exception of this worker's own code; a library's exceptions are failures. */
    static void check(Throwable thrown) {
        boolean mistake = thrown instanceof RuntimeException || thrown instanceof Error;
        if (mistake && origin(thrown) != null) {
            throw new OwnError(thrown);
        }
    }

    /** The exception in one line, with its place in this worker. */
    static String describe(Throwable thrown) {
        StackTraceElement origin = origin(thrown);
        return origin == null
                ? thrown.toString()
                : thrown + " (" + origin.getFileName() + ":" + origin.getLineNumber() + ")";
    }

    /** The frame that threw, if it is this worker's and not a library's; Java's own are skipped. */
    private static StackTraceElement origin(Throwable thrown) {
        for (StackTraceElement frame : thrown.getStackTrace()) {
            String name = frame.getClassName();
            if (!name.startsWith("java.") && !name.startsWith("jdk.")) {
                return name.startsWith("cachemark.") ? frame : null;
            }
        }
        return null;
    }
}
