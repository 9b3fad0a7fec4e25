package cachemark.worker;

import java.util.Locale;

/** The verbs of a tape, with the facts of each. A kind is a verb, `_noreply` or not. */
public enum Verb {
    GET(1, "reads"),
    GETS(2, "reads"),
    MGET(3, "reads batch"),
    SET(4, "writes quiet"),
    ADD(5, "writes quiet"),
    REPLACE(6, "writes quiet"),
    DELETE(7, "looks quiet"),
    TOUCH(8, "looks quiet"),
    GAT(9, "reads"),
    VERSION(10, ""),
    MSET(11, "writes quiet batch"),
    CAS(14, "writes looks"),
    INCR(15, "looks counts quiet"),
    DECR(16, "looks counts quiet");

    /** Kinds are numbered below this. */
    static final int KINDS = 64;

    private static final Verb[] BY_NUMBER = new Verb[17];

    static {
        for (Verb verb : values()) {
            BY_NUMBER[verb.number] = verb;
        }
    }

    public final int number;
    final boolean reads;
    final boolean writes;
    final boolean batch;
    final boolean counts;
    /** Whether it may have no reply. */
    final boolean quiet;
    /** Whether its reply says that keys were found or missed. */
    final boolean looks;

    Verb(int number, String traits) {
        this.number = number;
        reads = traits.contains("reads");
        writes = traits.contains("writes");
        batch = traits.contains("batch");
        counts = traits.contains("counts");
        quiet = traits.contains("quiet");
        looks = reads || traits.contains("looks");
    }

    /** Whether its record may have the generation of a value. */
    boolean hasGeneration() {
        return this == SET || this == GET || this == GETS || this == GAT || this == MGET;
    }

    /** The verb of a number on the tape, or null. */
    static Verb of(int number) {
        return number < BY_NUMBER.length ? BY_NUMBER[number] : null;
    }

    /** The kind of an operation as a number. */
    int kind(boolean noreply) {
        return noreply ? number + KINDS / 2 : number;
    }

    /** Whether the reply to a kind of operation says if its keys are there. */
    static boolean looksUp(int kind) {
        return kind < KINDS / 2 && of(kind).looks;
    }

    /** The name of a kind in messages. */
    static String kindName(int kind) {
        String name = of(kind % (KINDS / 2)).name().toLowerCase(Locale.ROOT);
        return kind < KINDS / 2 ? name : name + "_noreply";
    }
}
