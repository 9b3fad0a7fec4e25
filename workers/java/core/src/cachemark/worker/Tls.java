package cachemark.worker;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** TLS by the options `tls`, `tls_name`, `tls_client_cert` and `tls_client_key`. */
public final class Tls {
    static final Set<String> OPTIONS = Set.of("tls", "tls_name", "tls_client_cert", "tls_client_key");
    private static final Pattern KEY =
            Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", Pattern.DOTALL);
    private static final List<String> ALGORITHMS = List.of("EC", "RSA", "Ed25519");
    private static final char[] NO_PASSWORD = {};

    /** The trusted certificates, and the client's own. */
    public final SSLContext context;
    /** The name that the server's certificate must have; null: its address. */
    public final String name;

    private Tls(SSLContext context, String name) {
        this.context = context;
        this.name = name;
    }

    /** The TLS options; null without `tls`. */
    static Tls of(Map<String, String> options) {
        if (!options.containsKey("tls")) {
            return null;
        }
        try {
            TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
            trust.init(trusted(options.get("tls")));
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(own(options), trust.getTrustManagers(), null);
            return new Tls(context, options.get("tls_name"));
        } catch (IOException | GeneralSecurityException error) {
            throw new Unsupported("tls=" + options.get("tls") + ": " + error);
        }
    }

    private static KeyStore trusted(String file) throws IOException, GeneralSecurityException {
        KeyStore store = empty();
        for (Certificate certificate : certificates(file)) {
            store.setCertificateEntry(Integer.toString(store.size()), certificate);
        }
        return store;
    }

    private static KeyManager[] own(Map<String, String> options) throws IOException, GeneralSecurityException {
        if (!options.containsKey("tls_client_cert")) {
            return null;
        }
        Certificate[] chain = certificates(options.get("tls_client_cert")).toArray(new Certificate[0]);
        KeyStore store = empty();
        store.setKeyEntry("client", key(options.get("tls_client_key")), NO_PASSWORD, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(store, NO_PASSWORD);
        return keys.getKeyManagers();
    }

    private static KeyStore empty() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(String file)
            throws IOException, GeneralSecurityException {
        try (InputStream bytes = new ByteArrayInputStream(Files.readAllBytes(Path.of(file)))) {
            return CertificateFactory.getInstance("X.509").generateCertificates(bytes);
        }
    }

    private static PrivateKey key(String file) throws IOException, GeneralSecurityException {
        Matcher found = KEY.matcher(Files.readString(Path.of(file)));
        if (!found.find()) {
            throw new InvalidKeySpecException(file + ": it has no key in the form PKCS#8");
        }
        var encoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
        for (String algorithm : ALGORITHMS) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
            } catch (InvalidKeySpecException another) {
                continue;
            }
        }
        throw new InvalidKeySpecException(file + ": a key of none of " + ALGORITHMS);
    }
}
