// Infinispan's memcached endpoint on a port of the loopback: arguments are port, memory in MB, I/O threads.

package cachemark;

import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.StorageType;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.eviction.EvictionStrategy;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.server.memcached.MemcachedServer;
import org.infinispan.server.memcached.configuration.MemcachedProtocol;
import org.infinispan.server.memcached.configuration.MemcachedServerConfigurationBuilder;

final class Infinispan {
    private static final String CACHE = "cachemark";

    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        String memory = arguments[1] + "MB";
        int threads = Integer.parseInt(arguments[2]);

        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder().nonClusteredDefault();
        global.defaultCacheName(CACHE);
        ConfigurationBuilder cache = new ConfigurationBuilder();
        cache.encoding().mediaType(MediaType.APPLICATION_OCTET_STREAM);
        cache.statistics().enable();
        // Off the heap, sizes are counted; on it, Infinispan could only count items.
        cache.memory().storage(StorageType.OFF_HEAP).maxSize(memory).whenFull(EvictionStrategy.REMOVE);

        MemcachedServerConfigurationBuilder endpoint = new MemcachedServerConfigurationBuilder();
        endpoint.host("127.0.0.1").port(port).ioThreads(threads).defaultCacheName(CACHE);
        endpoint.protocol(MemcachedProtocol.AUTO);
        new MemcachedServer().start(endpoint.build(), new DefaultCacheManager(global.build(), cache.build()));
    }
}
