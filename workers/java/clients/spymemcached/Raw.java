package cachemark.clients;

import cachemark.worker.Verify;
import net.spy.memcached.CachedData;
import net.spy.memcached.transcoders.Transcoder;

/** Bytes as they are, flags 0. */
final class Raw implements Transcoder<Object> {
    @Override
    public boolean asyncDecode(CachedData data) {
        return false;
    }

    @Override
    public CachedData encode(Object value) {
        return new CachedData(0, (byte[]) value, getMaxSize());
    }

    @Override
    public Object decode(CachedData data) {
        return Verify.plain(data.getData(), data.getFlags());
    }

    @Override
    public int getMaxSize() {
        return Integer.MAX_VALUE; // the server decides which values are too large
    }
}
