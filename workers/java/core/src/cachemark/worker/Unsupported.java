package cachemark.worker;

/** A task that this client cannot do: the reason and the remedy. */
final class Unsupported extends RuntimeException {
    final String remedy;

    Unsupported(String reason, String remedy) {
        super(reason);
        this.remedy = remedy;
    }

    Unsupported(String reason) {
        this(reason, "");
    }
}
