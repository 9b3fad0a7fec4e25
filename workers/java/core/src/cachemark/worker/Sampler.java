package cachemark.worker;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import one.profiler.AsyncProfiler;

/** Samples of a run's functions by async-profiler, for {@code cachemark why --profile}. */
final class Sampler {
    private static final String PATH = System.getenv("CACHEMARK_PROFILE");

    private Sampler() {}

    /** Play a run, and sample a measured one if CACHEMARK_PROFILE names a file for its stacks. */
    static JsonObject sampled(JsonObject request, Callable<JsonObject> play) throws Exception {
        if (PATH == null || !Messages.text(request, "phase").equals("measure")) {
            return play.call();
        }
        Path path = Path.of(PATH);
        AsyncProfiler profiler;
        try {
            profiler = AsyncProfiler.getInstance();
            profiler.execute("start,event=ctimer,interval=1ms");
        } catch (IllegalStateException | UnsatisfiedLinkError | IOException refused) {
            Files.writeString(path, "# missing: async-profiler: " + refused.getMessage() + "\n");
            return play.call();
        }
        try {
            return play.call();
        } finally {
            profiler.execute("stop");
            Files.writeString(
                    path,
                    "# sampler: async-profiler " + profiler.getVersion() + "\n"
                            + named(profiler.dumpCollapsed(one.profiler.Counter.SAMPLES)));
        }
    }

    /** The stacks with the worker's own classes as files of cachemark; client files act for a lane. */
    private static String named(String stacks) {
        return stacks.lines()
                .map(line -> line.replaceAll("(cachemark/clients/[^;]*)(?=;| \\d+$)", "$1 (cachemark/lane)"))
                .map(line -> line.replaceAll("(cachemark/worker/(\\w+)[^;]*)(?=;| \\d+$)", "$1 (cachemark/$2)"))
                .map(line -> line + "\n")
                .collect(Collectors.joining());
    }
}
