package cachemark.clients;

/** AWS ElastiCache Cluster Client: a fork of spymemcached, driven by the same calls. */
public final class Elasticache extends Spymemcached {
    @Override
    public String library() {
        return "elasticache-java-cluster-client";
    }
}
