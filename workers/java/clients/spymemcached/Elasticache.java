package cachemark.clients;

import cachemark.worker.Client;
import cachemark.worker.Prepare;
import cachemark.worker.Session;
import java.io.IOException;
import java.util.Set;
import java.util.TreeSet;
import net.spy.memcached.ConnectionFactoryBuilder;
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

    @Override
    public Set<String> features() {
        Set<String> features = new TreeSet<>(super.features());
        features.add("tls");
        return features;
    }

    /**
     * With TLS, some of its connections never get to their first request: then a new client is opened.
     * The same factory makes it, as clients of a new one had no answer either.
     */
    @Override
    Session opened(ConnectionFactoryBuilder factory, Prepare setup, long connectMs)
            throws IOException, InterruptedException {
        for (int others = setup.tls == null ? 0 : 2; others > 0; others--) {
            try {
                return super.opened(factory, setup, connectMs / 3);
            } catch (IOException silent) {
                continue;
            }
        }
        return super.opened(factory, setup, connectMs);
    }

    @Override
    void encrypt(ConnectionFactoryBuilder factory, Prepare setup) {
        if (setup.tls == null) {
            return;
        }
        factory.setSSLContext(setup.tls.context);
        // It takes one name for all servers; without a name, it asks DNS for the name of each address.
        Set<String> hosts = new TreeSet<>();
        setup.servers.forEach(server -> hosts.add(server.getHostString()));
        if (setup.tls.name != null) {
            factory.setHostnameForTlsVerification(setup.tls.name);
        } else if (hosts.size() == 1) {
            factory.setHostnameForTlsVerification(hosts.iterator().next());
        }
    }
}
