package cachemark.worker;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** The messages of the worker protocol: JSON objects. */
final class Messages {
    private Messages() {}

    /** The request in a line; null if it is none. */
    static JsonObject parse(String line) {
        try {
            JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            request.get("type").getAsString();
            return request;
        } catch (JsonParseException | IllegalStateException | NullPointerException error) {
            return null;
        }
    }

    static JsonObject of(String type) {
        JsonObject message = new JsonObject();
        message.addProperty("type", type);
        return message;
    }

    /** A client's identity and capabilities. */
    static JsonObject ready(String name, Client client) {
        JsonObject ready = of("ready");
        ready.addProperty("protocol", 2);
        ready.addProperty("client", "java/" + name);
        ready.addProperty("library", client.library());
        ready.addProperty("library_version", client.version());
        ready.addProperty("language", "java");
        ready.addProperty("runtime", System.getProperty("java.vm.name") + " " + Runtime.version());
        JsonArray capabilities = new JsonArray();
        client.wires().forEach(capabilities::add);
        client.claims().forEach(capabilities::add);
        List.of("slices", "timeline", "groups", "calls").forEach(capabilities::add);
        Set<String> kinds = new TreeSet<>();
        client.wires().forEach(wire -> kinds.addAll(client.kinds(wire, false)));
        kinds.forEach(capabilities::add);
        ready.add("capabilities", capabilities);
        return ready;
    }

    static JsonObject error(String kind, String text, boolean definite) {
        JsonObject error = of("error");
        error.addProperty("kind", kind);
        error.addProperty("text", text);
        error.addProperty("definite", definite);
        return error;
    }

    static JsonObject progress(long ok, long failed) {
        JsonObject progress = of("progress");
        progress.addProperty("ops", ok);
        progress.addProperty("errors", failed);
        return progress;
    }

    /** The planned start in a request, or 0. */
    static long start(JsonObject request) {
        Long startUnixNs = number(request, "start_unix_ns");
        return startUnixNs == null ? 0 : startUnixNs;
    }

    /** A time in µs in a request; less than 0 if it has none. */
    static long spanNs(JsonObject request, String name) {
        Long us = number(request, name);
        return us == null ? -1 : us * 1000;
    }

    /** A text in a request; empty if it has none. */
    static String text(JsonObject request, String name) {
        return request.has(name) && !request.get(name).isJsonNull()
                ? request.get(name).getAsString()
                : "";
    }

    /** Whether a request asks for something. */
    static boolean flag(JsonObject request, String name) {
        return request.has(name) && request.get(name).getAsBoolean();
    }

    /** An object in a request, or null. */
    static JsonObject object(JsonObject request, String name) {
        return request.has(name) && !request.get(name).isJsonNull() ? request.getAsJsonObject(name) : null;
    }

    /** A number in a request, or null. */
    static Long number(JsonObject request, String name) {
        return request.has(name) && !request.get(name).isJsonNull()
                ? request.get(name).getAsLong()
                : null;
    }
}
