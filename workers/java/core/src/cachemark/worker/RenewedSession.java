package cachemark.worker;

import java.util.concurrent.Future;

/**
 * A caller's session that closes its connections after a number of calls and opens them again, between two calls, not
 * timed.
 */
final class RenewedSession implements Session {
    /** A server could not be reached again. */
    static final class Unreachable extends RuntimeException {
        private Unreachable(Exception cause) {
            super("connecting again: " + cause, cause);
        }
    }

    private final Client client;
    private final Prepare setup;
    private final boolean quiet;
    private Session session;
    /** Calls since it was opened. */
    private long made;
    /** Barriers before connections were closed, for `barrier` to report. */
    private int barriers;

    private long renewed;

    RenewedSession(Client client, Prepare setup) throws Exception {
        this.client = client;
        this.setup = setup;
        quiet = setup.tape.kinds().stream().anyMatch(kind -> kind.endsWith("_noreply"));
        session = client.open(setup);
    }

    /** The connections that were reopened since the last call of this. */
    long takeRenewed() {
        long taken = renewed * setup.servers.size();
        renewed = 0;
        return taken;
    }

    /** A script that renews the session before the next operation, when it is due. */
    Script renewing(Script script) {
        made = 0;
        return new Renewing(script);
    }

    private void renew() {
        try {
            if (quiet) { // operations without a reply must arrive first
                barriers += session.barrier();
            }
            session.close();
            session = client.open(setup);
        } catch (Exception error) {
            throw new Unreachable(error);
        }
        made = 0;
        renewed++;
    }

    @Override
    public Object call(Op op) throws Exception {
        made++;
        return session.call(op);
    }

    @Override
    public Future<?> begin(Op op) throws Exception {
        made++;
        return session.begin(op);
    }

    @Override
    public Object end(Op op, Future<?> begun, long timeoutNs) throws Exception {
        return session.end(op, begun, timeoutNs);
    }

    @Override
    public long failure(Throwable thrown) {
        return session.failure(thrown);
    }

    @Override
    public int barrier() throws Exception {
        int answered = session.barrier() + barriers;
        barriers = 0;
        return answered;
    }

    @Override
    public void close() throws Exception {
        session.close();
    }

    private final class Renewing implements Script {
        private final Script script;

        private Renewing(Script script) {
            this.script = script;
        }

        @Override
        public Op next() {
            if (made >= setup.reconnectAfter) {
                renew();
            }
            return script.next();
        }

        @Override
        public boolean isEmpty() {
            return script.isEmpty();
        }

        @Override
        public void unread() {
            script.unread();
        }

        @Override
        public int place() {
            return script.place();
        }

        @Override
        public long dueNs() {
            return script.dueNs();
        }
    }
}
