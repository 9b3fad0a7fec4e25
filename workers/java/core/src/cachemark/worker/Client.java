package cachemark.worker;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/** A client file's facts about its library, and its way to open it. */
public interface Client {
    String library();

    String version();

    /** The wires, the library's own choice first; only `none` for a cache in this process. */
    List<String> wires();

    /** Some of threads, pipeline, in_order, open_loop, unix, shared, cluster, merges. */
    Set<String> features();

    /** The features, with those that the worker's loops add. */
    default Set<String> claims() {
        Set<String> claims = new TreeSet<>(features());
        if (claims.contains("pipeline")) {
            claims.add("refill_all");
            if (!wires().equals(List.of("none"))) {
                claims.add("cancel"); // its futures
            }
        }
        return claims;
    }

    /** Kinds of operation on a wire; with `pipelined`, only kinds that can begin without waiting. */
    Set<String> kinds(String wire, boolean pipelined);

    /** Its options, each with its values. */
    Map<String, Set<String>> options();

    /** Connect. Any exception means that a server cannot be reached. */
    Session open(Prepare setup) throws Exception;

    /** The client of a name. Throws Unsupported if its library is not on the class path. */
    static Client load(String name) {
        // In Turkish, the capital of i is not I.
        String simple = name.substring(0, 1).toUpperCase(Locale.ROOT) + name.substring(1);
        try {
            Class<?> known = Class.forName("cachemark.clients." + simple);
            return (Client) known.getDeclaredConstructor().newInstance();
        } catch (ClassNotFoundException | NoClassDefFoundError error) {
            throw new Unsupported(name + " is not installed: " + error, "cachemark setup java");
        } catch (ReflectiveOperationException error) {
            // Its constructor threw: the cause says why.
            throw new IllegalStateException(error.getCause() == null ? error : error.getCause());
        }
    }

    /** A library's version as its own jar says, in the manifest or in Maven's properties. */
    static String version(Class<?> part, String artifact) {
        String version = part.getPackage().getImplementationVersion();
        if (version != null) {
            return version;
        }
        String path = "/META-INF/maven/" + artifact + "/pom.properties";
        try (InputStream in = part.getResourceAsStream(path)) {
            Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version");
        } catch (IOException | NullPointerException error) {
            throw new IllegalStateException("no version in the jar of " + artifact, error);
        }
    }
}
