package cachemark.worker;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * CPU time of this process so far. The kernel reports the whole process's time in ticks of 10 ms,
 * too coarse for a short run; the threads' times in ns, but without ended threads and without the
 * current time slice; a thread's own time exactly, to itself. A run takes the largest of the three.
 */
record Cpu(long userTicks, long systemTicks, long threadsNs) {
    private static final long TICK_NS = 10_000_000;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final Path SELF = Path.of("/proc/self");

    static Cpu now() {
        try {
            String stat = Files.readString(SELF.resolve("stat"));
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            return new Cpu(Long.parseLong(fields[11]), Long.parseLong(fields[12]), threads());
        } catch (IOException error) {
            return new Cpu(0, 0, 0); // no Linux
        }
    }

    private static long threads() throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(SELF.resolve("task"))) {
            for (Path task : tasks) {
                try {
                    sum += Long.parseLong(
                            Files.readString(task.resolve("schedstat")).split(" ")[0]);
                } catch (IOException ended) {
                    continue;
                }
            }
        }
        return sum;
    }

    /** CPU time of the calling thread so far. */
    static long ofThisThread() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /** User and system ns since an earlier reading; `callersNs` is the time of the callers alone. */
    long[] since(Cpu before, long callersNs) {
        long user = userTicks - before.userTicks;
        long system = systemTicks - before.systemTicks;
        long threads = Math.max(callersNs, threadsNs - before.threadsNs);
        long all = Math.max((user + system) * TICK_NS, threads);
        long inKernel = user + system == 0 ? 0 : all * system / (user + system);
        return new long[] {all - inKernel, inKernel};
    }
}
