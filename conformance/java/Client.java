import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * A client by Java's own TLS. Its words are a port and a folder with certificates. It runs all of
 * its cases and prints a line for each: `passed: NAME` or `failed: NAME: REASON`. With a third word
 * it runs one alone, for which Java has to be started with a low limit of bytes for each key.
 */
public class Client {
    interface Check { void run(String version) throws Exception; }

    static int port;
    static Path folder;

    public static void main(String[] words) throws Exception {
        port = Integer.parseInt(words[0]);
        folder = Path.of(words[1]);
        if (words.length > 2) {
            told("TLSv1.3: 6 × 1 MB, keys replaced at a low limit", Client::replaced);
            return;
        }
        Map<String, Check> cases = new TreeMap<>();
        cases.put("a page", Client::page);
        cases.put("1 MB down", v -> repeated(v, 5, "GET /1m.bin", new byte[0], pattern()));
        cases.put("1 MB up", v -> repeated(v, 5, "POST /taken", pattern(), taken()));
        cases.put("500 requests on one connection",
            v -> repeated(v, 500, "POST /taken", new byte[1], taken()));
        cases.put("sessions resumed", Client::resumed);
        cases.put("certificates by name", Client::names);
        cases.put("each cipher", Client::ciphers);
        cases.put("a client's certificate, good", v -> certificate(v, "good", true));
        cases.put("a client's certificate, foreign", v -> certificate(v, "foreign", false));
        cases.put("a client's certificate, revoked", v -> certificate(v, "revoked", false));
        cases.put("no certificate where one is required", v -> certificate(v, "", false));
        cases.put("the end is orderly", Client::ended);
        for (String version : List.of("TLSv1.2", "TLSv1.3")) {
            cases.forEach((name, check) -> told(version + ": " + name, () -> check.run(version)));
        }
    }

    interface Step { void run() throws Exception; }

    static void told(String name, Step step) {
        try {
            step.run();
            System.out.println("passed: " + name);
        } catch (Exception error) {
            System.out.println("failed: " + name + ": " + error);
        }
    }

    static void expect(boolean holds, String told) throws IOException {
        if (!holds) throw new IOException(told);
    }

    static byte[] pattern() {
        byte[] content = new byte[1 << 20];
        for (int at = 0; at < content.length; at++) content[at] = (byte) at;
        return content;
    }

    static byte[] taken() { return "taken\n".getBytes(StandardCharsets.US_ASCII); }

    /** What trusts the authority, and presents a client's certificate if it is named. */
    static SSLContext context(String client) throws Exception {
        var factory = CertificateFactory.getInstance("X.509");
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        try (InputStream root = Files.newInputStream(folder.resolve("root.pem"))) {
            trusted.setCertificateEntry("root", factory.generateCertificate(root));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManager[] keys = null;
        if (!client.isEmpty()) {
            KeyStore own = KeyStore.getInstance("PKCS12");
            try (InputStream file = Files.newInputStream(folder.resolve(client + ".p12"))) {
                own.load(file, "password".toCharArray());
            }
            var managers = KeyManagerFactory.getInstance("SunX509");
            managers.init(own, "password".toCharArray());
            keys = managers.getKeyManagers();
        }
        SSLContext made = SSLContext.getInstance("TLS");
        made.init(keys, trust.getTrustManagers(), null);
        return made;
    }

    static SSLSocket connect(SSLContext context, String version, String name) throws Exception {
        Socket plain = new Socket();
        plain.connect(new InetSocketAddress("127.0.0.1", port), 10_000);
        plain.setSoTimeout(10_000);
        var link = (SSLSocket) context.getSocketFactory().createSocket(plain, name, port, true);
        link.setEnabledProtocols(new String[] {version});
        SSLParameters parameters = link.getSSLParameters();
        parameters.setServerNames(List.of(new SNIHostName(name)));
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        link.setSSLParameters(parameters);
        return link;
    }

    static void send(SSLSocket link, String line, String host, String more, byte[] body)
            throws IOException {
        String head = line + " HTTP/1.1\r\nHost: " + host + "\r\n" + more
            + (body.length > 0 ? "Content-Length: " + body.length + "\r\n" : "") + "\r\n";
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(head.getBytes(StandardCharsets.US_ASCII));
        all.write(body);
        OutputStream out = link.getOutputStream();
        out.write(all.toByteArray());
        out.flush();
    }

    /** Reads one response; its content is returned. */
    static byte[] receive(InputStream in) throws IOException {
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            int next = in.read();
            expect(next >= 0, "the end within a head");
            head.append((char) next);
        }
        expect(head.indexOf("HTTP/1.1 200 ") == 0, head.toString());
        String lower = head.toString().toLowerCase();
        int at = lower.indexOf("content-length: ") + 16;
        int length = Integer.parseInt(lower.substring(at, lower.indexOf("\r\n", at)));
        byte[] content = in.readNBytes(length);
        expect(content.length == length, "the end within a body");
        return content;
    }

    static SSLSocket served(SSLContext context, String version, String name) throws Exception {
        SSLSocket link = connect(context, version, name);
        send(link, "GET /", name, "", new byte[0]);
        String page = new String(receive(link.getInputStream()), StandardCharsets.UTF_8);
        expect(page.contains("The page is here."), "another page");
        return link;
    }

    static void page(String version) throws Exception {
        try (SSLSocket link = served(context(""), version, "localhost")) {
            expect(link.getSession().getProtocol().equals(version), "another version");
        }
    }

    static void names(String version) throws Exception {
        for (String name : List.of("localhost", "p384.test", "rsa.test", "ed25519.test")) {
            try (SSLSocket link = served(context(""), version, name)) {
                expect(link.getSession().getPeerCertificates().length == 2, "another chain");
            }
        }
    }

    static void ciphers(String version) throws Exception {
        boolean isNew = version.equals("TLSv1.3");
        List<String> ends = List.of("AES_128_GCM_SHA256", "AES_256_GCM_SHA384",
            "CHACHA20_POLY1305_SHA256");
        for (String end : ends) {
            String cipher = isNew ? "TLS_" + end : "TLS_ECDHE_ECDSA_WITH_" + end;
            try (SSLSocket link = connect(context(""), version, "localhost")) {
                link.setEnabledCipherSuites(new String[] {cipher});
                send(link, "GET /", "localhost", "", new byte[0]);
                receive(link.getInputStream());
                expect(link.getSession().getCipherSuite().equals(cipher), "another cipher");
            }
        }
    }

    static void repeated(String version, int count, String line, byte[] body, byte[] wanted)
            throws Exception {
        try (SSLSocket link = connect(context(""), version, "localhost")) {
            for (int number = 0; number < count; number++) {
                send(link, line, "localhost", "", body);
                byte[] content = receive(link.getInputStream());
                expect(Arrays.equals(content, wanted), "request " + number + ": other bytes");
            }
        }
    }

    static void resumed(String version) throws Exception {
        SSLContext context = context("");
        long first = 0;
        for (int number = 0; number < 4; number++) {
            try (SSLSocket link = served(context, version, "localhost")) {
                // A resumed session has the time of the first one.
                long made = link.getSession().getCreationTime();
                if (number == 0) first = made;
                expect(made == first, "connection " + number + " is not resumed");
            }
            Thread.sleep(20);
        }
    }

    static void certificate(String version, String client, boolean isServed) throws Exception {
        try (SSLSocket link = served(context(client), version, "required.test")) {
            expect(isServed, "it is served");
        } catch (SSLException error) {
            if (isServed) throw error;
            expect(error.toString().contains("Received fatal alert"), error.toString());
        }
    }

    static void ended(String version) throws Exception {
        try (SSLSocket link = connect(context(""), version, "localhost")) {
            send(link, "GET /1m.bin", "localhost", "Connection: close\r\n", new byte[0]);
            InputStream in = link.getInputStream();
            expect(Arrays.equals(receive(in), pattern()), "other bytes");
            // (Java reports the end of TCP without close_notify as an error.)
            expect(in.read() < 0, "bytes behind the end");
        }
    }

    /** `jdk.tls.keyLimits` is set low: Java asks for new keys every megabyte. */
    static void replaced() throws Exception {
        try (SSLSocket link = connect(context(""), "TLSv1.3", "localhost")) {
            for (int number = 0; number < 6; number++) {
                send(link, "GET /1m.bin", "localhost", "", new byte[0]);
                expect(Arrays.equals(receive(link.getInputStream()), pattern()), "other bytes");
                Thread.sleep(1_100);
            }
        }
    }
}
