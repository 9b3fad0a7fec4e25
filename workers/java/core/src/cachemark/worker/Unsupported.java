package cachemark.worker;

/** A task that this client cannot do: the reason and what would make it work. */
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
