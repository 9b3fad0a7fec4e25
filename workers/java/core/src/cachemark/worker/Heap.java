package cachemark.worker;

import com.google.gson.JsonObject;
import com.sun.management.ThreadMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

/**
 * Allocations and collections of the JVM so far. The JVM knows the bytes of live threads only, so they
 * are unknown for a run in which a thread ended. It counts no objects.
 */
record Heap(Map<Long, Long> threadBytes, long threadsStarted, long collections, long collectionMs) {
    static Heap now() {
        long count = 0;
        long ms = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            String name = collector.getName();
            if (!name.contains("Concurrent") && !name.contains("Cycles")) { // these run beside the program
                count += collector.getCollectionCount();
                ms += collector.getCollectionTime();
            }
        }
        // The interface of every JVM that is made from OpenJDK.
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long[] ids = threads.getAllThreadIds();
        long[] bytes = threads.getThreadAllocatedBytes(ids);
        Map<Long, Long> threadBytes = new HashMap<>();
        for (int i = 0; i < ids.length; i++) {
            threadBytes.put(ids[i], bytes[i]);
        }
        return new Heap(threadBytes, threads.getTotalStartedThreadCount(), count, ms);
    }

    /** The growth since an earlier reading, for the message. */
    JsonObject since(Heap before) {
        JsonObject heap = new JsonObject();
        heap.addProperty("allocated_bytes", bytesSince(before));
        heap.addProperty("collections", collections - before.collections);
        heap.addProperty("collection_ns", 1_000_000 * (collectionMs - before.collectionMs));
        return heap;
    }

    /** Null if a thread ended meanwhile, or if this JVM does not count. */
    private Long bytesSince(Heap before) {
        long begun = threadsStarted - before.threadsStarted;
        boolean allLive = threadBytes.keySet().containsAll(before.threadBytes.keySet())
                && threadBytes.size() - before.threadBytes.size() == begun;
        if (!allLive || threadBytes.containsValue(-1L)) {
            return null;
        }
        long bytes = 0;
        for (Map.Entry<Long, Long> thread : threadBytes.entrySet()) {
            bytes += thread.getValue() - before.threadBytes.getOrDefault(thread.getKey(), 0L);
        }
        return bytes;
    }
}
