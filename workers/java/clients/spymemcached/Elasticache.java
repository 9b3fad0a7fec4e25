package cachemark.clients;

import cachemark.worker.Client;
import net.spy.memcached.MemcachedClient;

/** AWS ElastiCache Cluster Client: a fork of spymemcached, driven by the same calls. */
public final class Elasticache extends Spymemcached {
    @Override
    public String library() {
        return "elasticache-java-cluster-client";
    }

    @Override
    public String version() {
        return Client.version(MemcachedClient.class, "com.amazonaws/elasticache-java-cluster-client");
    }
}
