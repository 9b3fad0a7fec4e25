package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The request `prepare`, as client files read it. */
public final class Prepare {
    private static final long CONNECT_MS = 10_000;

    public final List<InetSocketAddress> servers = new ArrayList<>();
    public final String wire;
    public final int threads;
    public final int connections;
    public final int depth;
    /** Whether a caller begins its next operations only when all outstanding ones have ended. */
    public final boolean refillAll;

    public final long timeoutMs;
    public final Map<String, String> options = new TreeMap<>();
    /** How to encrypt; null: not at all. */
    public final Tls tls;
    /** The login of each connection, or null. */
    public final Login login;

    /** After this number of calls a caller closes its connections and opens them again; 0: never. */
    final long reconnectAfter;

    public final Tape tape;
    private final boolean timesEach;
    final int share;
    final int shares;

    public Prepare(JsonObject request, Tape tape) {
        this(request, tape, true);
    }

    /** `timesEach`: each operation is timed, not only each group. */
    Prepare(JsonObject request, Tape tape, boolean timesEach) {
        this.tape = tape;
        this.timesEach = timesEach;
        wire = request.has("wire") ? request.get("wire").getAsString() : "text";
        threads = number(request, "threads", 1);
        connections = number(request, "connections", 1);
        depth = number(request, "depth", 1);
        refillAll = request.has("refill") && request.get("refill").getAsString().equals("all");
        timeoutMs = number(request, "timeout_ms", 1000);
        JsonArray segment = request.has("segment") ? request.getAsJsonArray("segment") : null;
        share = segment == null ? 0 : segment.get(0).getAsInt();
        shares = segment == null ? 1 : segment.get(1).getAsInt();
        if (request.has("options")) {
            request.getAsJsonObject("options")
                    .entrySet()
                    .forEach(each -> options.put(each.getKey(), each.getValue().getAsString()));
        }
        reconnectAfter = calls(options.get("reconnect_after"));
        tls = Tls.of(options);
        login = options.containsKey("auth") ? Login.read(options.get("auth")) : null;
        for (JsonElement server : request.getAsJsonArray("servers")) {
            servers.add(address(server.getAsString()));
        }
    }

    private static int number(JsonObject request, String name, int otherwise) {
        return request.has(name) ? request.get(name).getAsInt() : otherwise;
    }

    /** The option `reconnect_after`; 0 without it, -1 if it is no number of calls. */
    private static long calls(String text) {
        if (text == null) {
            return 0;
        }
        return text.matches("[1-9][0-9]{0,17}") ? Long.parseLong(text) : -1;
    }

    private static InetSocketAddress address(String server) {
        if (server.startsWith("unix:")) {
            throw new Unsupported("no Unix sockets");
        }
        int colon = server.lastIndexOf(':');
        if (colon < 0) {
            throw new IllegalArgumentException("a server is HOST:PORT, not " + server);
        }
        String host = server.substring(0, colon).replaceAll("[\\[\\]]", "");
        return new InetSocketAddress(host, Integer.parseInt(server.substring(colon + 1)));
    }

    /** Whether to use the settings that all clients share, and not the library's own. */
    public boolean common() {
        return !"defaults".equals(options.get("profile"));
    }

    public boolean binary() {
        return wire.equals("binary");
    }

    public boolean ketama() {
        return "ketama".equals(options.get("hashing"));
    }

    /**
     * The time limit for the connections of a library that opens them in the background: it reports no
     * failure, and a cold JVM has to load its classes meanwhile.
     */
    public long connectMs() {
        return Math.max(timeoutMs, CONNECT_MS);
    }

    /** Operations that may be outstanding on one client at the same time. */
    public int outstanding() {
        return Math.max(1, threads / connections) * depth;
    }

    /** The number of clients to open: callers share them evenly. */
    int clients() {
        return wire.equals("none") ? 1 : connections;
    }

    /** Refuse what the client cannot do, before the prefill. */
    void check(Client client) {
        String refusal = refusal(client);
        if (refusal != null) {
            throw new Unsupported(client.library() + ": " + refusal);
        }
        if (client.wires().contains("none") && !servers.isEmpty()) {
            throw new Unsupported(client.library() + ": no servers, it is inside this process");
        }
    }

    /** Why the client cannot have several operations outstanding here; null if it can. */
    private String depthRefusal(Client client) {
        if (!client.features().contains("pipeline")) {
            return "its calls block: one operation at a time for each caller (depth 1)";
        }
        if (servers.size() > 1 && timesEach) {
            return "depth 1 with several servers: futures are awaited in order; `cachemark jmh --depth` has the rates";
        }
        if (tape.file.openLoop) {
            return "depth 1 in an open loop; raise threads instead";
        }
        return null;
    }

    /** Why the client cannot renew connections as requested; null if it can. */
    private String renewalRefusal() {
        if (reconnectAfter < 0) {
            return "option reconnect_after is a number from 1 on, not " + options.get("reconnect_after");
        }
        if (reconnectAfter > 0 && (!timesEach || depth > 1 || connections != threads)) {
            return "reconnect_after: a connection for each caller, and depth 1";
        }
        return null;
    }

    private String refusal(Client client) {
        if (!client.wires().contains(wire)) {
            return "no wire `" + wire + "`, only " + String.join(", ", client.wires());
        }
        if (servers.isEmpty() != wire.equals("none")) {
            return servers.isEmpty() ? "it needs a server" : "it has no servers";
        }
        if (servers.size() > 1 && !client.features().contains("cluster")) {
            return "one server";
        }
        if (tape.file.thinks) {
            return "no time to think between operations";
        }
        String depths = depth > 1 ? depthRefusal(client) : null;
        if (depths != null) {
            return depths;
        }
        if (!wire.equals("none") && threads % connections != 0) {
            return "as many connections as threads, or a number of threads share each";
        }
        if (tape.repeats()) {
            return "a batch that names a key twice: the libraries give maps";
        }
        String renewal = renewalRefusal();
        String unknown = renewal != null ? renewal : unknownOption(client);
        if (unknown != null) {
            return unknown;
        }
        Set<String> missing = new TreeSet<>(tape.kinds());
        missing.removeAll(client.kinds(wire, depth > 1));
        return missing.isEmpty()
                ? null
                : "no " + String.join(", ", missing) + (depth > 1 ? " at a depth above 1" : " on the wire " + wire);
    }

    private String unknownOption(Client client) {
        for (Map.Entry<String, String> option : options.entrySet()) {
            if (client.features().contains("tls") && Tls.OPTIONS.contains(option.getKey())) {
                continue;
            }
            if (client.features().contains("login_sasl") && option.getKey().equals("auth")) {
                continue;
            }
            if (!wire.equals("none") && option.getKey().equals("reconnect_after")) {
                continue;
            }
            Set<String> values = client.options().getOrDefault(option.getKey(), Set.of());
            if (!values.contains(option.getValue())) {
                return "no option " + option.getKey() + "=" + option.getValue() + "; it has "
                        + (client.options().isEmpty() ? "none" : client.options());
            }
        }
        return null;
    }

    static Path tape(JsonObject request) {
        return Path.of(request.get("tape").getAsString());
    }
}
