package cachemark.jmh;

import cachemark.worker.Calls;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.ThreadParams;

/**
 * The client files of the worker as JMH benchmarks: one invocation is one blocking call, or the eight
 * commands of `set-get`; each answer is verified. A call that fails, or that misses a key or does not
 * store its value, ends its benchmark without a figure.
 *
 * <p>`java -jar benchmarks.jar -t 8 -p client=folsom -p server=HOST:PORT`. The JVM has the worker's
 * flags, and the default times are short; `-f 5 -wi 5 -w 10 -i 5 -r 10` are JMH's defaults.
 */
@State(Scope.Benchmark)
@Fork(
        value = 1,
        jvmArgs = {"-XX:+UseG1GC", "-Xms1g", "-Xmx1g"})
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class Memcached {
    /** A client of worker.toml; `elasticache` is in a jar of its own. */
    @Param({"spymemcached", "xmemcached", "folsom"})
    public String client;

    /** Join several by a plus sign. CACHEMARK_JMH_OPTIONS has options for TLS and logins, as JSON. */
    @Param("127.0.0.1:11211")
    public String server;

    /** text, binary; without effect for a cache in the process. */
    @Param("text")
    public String wire;

    /** get, gets, gat, mget, set, replace, touch; set-get: sets and gets four keys, one by one. */
    @Param({"get", "set"})
    public String operation;

    /** random: keys of 20 bytes; original: key0, key1 …, with values of 9 to 12 bytes. */
    @Param("random")
    public String data;

    /** In bytes; without effect for the data `original`. */
    @Param("100")
    public int valueSize;

    @Param("1000")
    public int keys;

    /** Number of keys in an mget. */
    @Param("10")
    public int batch;

    /** set-get: all threads use the same four keys, instead of going through their own. */
    @Param("false")
    public boolean sameKeys;

    /** set-get: send this number of commands, then await all of them; 1 for a client without futures. */
    @Param("1")
    public int depth;

    /** One client for all threads (shared), or one for each thread (own). */
    @Param("shared")
    public String connection;

    /** common: raw bytes, as for all clients of cachemark; defaults: the library's own settings. */
    @Param("common")
    public String profile;

    @Param("1000")
    public int timeoutMs;

    private Calls calls;

    @Setup(Level.Trial)
    public void open(BenchmarkParams params) throws Exception {
        if (!connection.matches("shared|own")) {
            throw new IllegalArgumentException("connection is shared or own, not " + connection);
        }
        if (!data.matches("random|original")) {
            throw new IllegalArgumentException("data is random or original, not " + data);
        }
        Path tape = Files.createTempFile("cachemark-", ".tape");
        try {
            TapeData stored = data.equals("original") ? TapeData.original(keys) : TapeData.random(keys, valueSize);
            TapeWriter.write(tape, operation, stored, batch, sameKeys);
            calls = new Calls(
                    client,
                    server.split("\\+"),
                    wire,
                    tape,
                    params.getThreads(),
                    connection.equals("shared"),
                    depth,
                    profile,
                    System.getenv().getOrDefault("CACHEMARK_JMH_OPTIONS", "{}"),
                    timeoutMs);
        } finally {
            Files.delete(tape);
        }
    }

    @TearDown(Level.Trial)
    public void close() throws Exception {
        calls.close();
    }

    /** A thread's own operations. */
    @State(Scope.Thread)
    public static class Caller {
        private Calls.Caller calls;

        @Setup(Level.Trial)
        public void take(Memcached cell, ThreadParams thread) {
            calls = cell.calls.caller(thread.getThreadIndex());
        }
    }

    @Benchmark
    @BenchmarkMode(Mode.Throughput)
    @OutputTimeUnit(TimeUnit.SECONDS)
    public Object throughput(Caller caller) throws Exception {
        return caller.calls.call();
    }

    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    @OutputTimeUnit(TimeUnit.MICROSECONDS)
    public Object latency(Caller caller) throws Exception {
        return caller.calls.call();
    }
}
