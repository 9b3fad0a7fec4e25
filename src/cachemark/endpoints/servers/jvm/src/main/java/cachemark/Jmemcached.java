// jmemcached, in its text mode, on a port of the loopback: arguments are port and memory in MB.

package cachemark;

import com.thimbleware.jmemcached.CacheImpl;
import com.thimbleware.jmemcached.Key;
import com.thimbleware.jmemcached.LocalCacheElement;
import com.thimbleware.jmemcached.MemCacheDaemon;
import com.thimbleware.jmemcached.storage.hash.ConcurrentLinkedHashMap;
import com.thimbleware.jmemcached.storage.hash.ConcurrentLinkedHashMap.EvictionPolicy;
import java.net.InetSocketAddress;

final class Jmemcached {
    // Memory is what shall limit it, not the number of items, but it makes room for all of them at once.
    private static final int SMALLEST_ITEM_BYTES = 64;

    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        long memory = Long.parseLong(arguments[1]) << 20;
        int most = (int) Math.min(Integer.MAX_VALUE, memory / SMALLEST_ITEM_BYTES);
        ConcurrentLinkedHashMap<Key, LocalCacheElement> items =
                ConcurrentLinkedHashMap.create(EvictionPolicy.LRU, most, memory);

        MemCacheDaemon<LocalCacheElement> daemon = new MemCacheDaemon<>();
        daemon.setCache(new CacheImpl(items));
        daemon.setAddr(new InetSocketAddress("127.0.0.1", port));
        daemon.start();
    }
}
