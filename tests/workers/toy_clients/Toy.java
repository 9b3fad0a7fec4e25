package cachemark.clients;

import cachemark.worker.Client;
import cachemark.worker.Op;
import cachemark.worker.Prepare;
import cachemark.worker.Session;
import cachemark.worker.Verb;
import cachemark.worker.Verify;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A socket and no library. The text protocol, `get` and `set`. */
public final class Toy implements Client {
    @Override
    public String library() {
        return "none";
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public List<String> wires() {
        return List.of("text");
    }

    @Override
    public Set<String> features() {
        return Set.of("threads", "open_loop");
    }

    @Override
    public Set<String> kinds(String wire, boolean pipelined) {
        return Set.of("get", "set");
    }

    @Override
    public Map<String, Set<String>> options() {
        return Map.of();
    }

    @Override
    public Session open(Prepare setup) throws IOException {
        return new OpenSession(setup);
    }

    /** After a failure the next call opens another connection. */
    private static final class OpenSession implements Session {
        private final InetSocketAddress server;
        private final int timeoutMs;
        private Socket socket;
        private DataInputStream replies;

        private OpenSession(Prepare setup) throws IOException {
            server = setup.servers.get(0);
            timeoutMs = (int) setup.timeoutMs;
            connect();
        }

        private void connect() throws IOException {
            socket = new Socket();
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(timeoutMs);
            socket.connect(server, timeoutMs);
            replies = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        }

        @Override
        public Object call(Op op) throws IOException, Verify.Failure {
            // in a call: if (op.verb == Verb.GET) op.values.clear();
            if (socket == null) {
                connect();
            }
            if (op.verb == Verb.SET) {
                send("set " + op.key + " 0 " + op.exptimeS + " " + op.value.length + "\r\n", op.value);
                return line().equals("STORED");
            }
            send("get " + op.key, new byte[0]);
            String line = line();
            if (line.equals("END")) {
                return null;
            }
            byte[] value = new byte[Integer.parseInt(line.split(" ")[3])];
            replies.readFully(value);
            line();
            line();
            // in verification: if (value != null) return "no bytes";
            return value;
        }

        private void send(String text, byte[] value) throws IOException {
            byte[] head = text.getBytes(StandardCharsets.UTF_8);
            byte[] request = new byte[head.length + value.length + 2];
            System.arraycopy(head, 0, request, 0, head.length);
            System.arraycopy(value, 0, request, head.length, value.length);
            request[request.length - 2] = '\r';
            request[request.length - 1] = '\n';
            socket.getOutputStream().write(request);
        }

        private String line() throws IOException, Verify.Failure {
            StringBuilder line = new StringBuilder();
            for (int letter = replies.read(); letter != '\n'; letter = replies.read()) {
                if (letter < 0) {
                    throw new EOFException("closed by the server");
                }
                if (letter != '\r') {
                    line.append((char) letter);
                }
            }
            if (line.indexOf("ERROR") >= 0) {
                boolean server = line.indexOf("SERVER_ERROR") == 0;
                throw new Verify.Failure(server ? Verify.SERVER : Verify.CLIENT);
            }
            return line.toString();
        }

        @Override
        public long failure(Throwable thrown) {
            if (thrown instanceof Verify.Failure failure) {
                return failure.outcome;
            }
            close();
            return thrown instanceof SocketTimeoutException ? Verify.TIMEOUT : Verify.CONNECTION;
        }

        @Override
        public void close() {
            try {
                if (socket != null) {
                    socket.close();
                }
            } catch (IOException error) {
                System.err.println("close: " + error);
            }
            socket = null;
        }
    }
}
