// The peer of crates/server/examples/echo.rs in Java, on the JDK's own server: 19 bytes at /echo.
// Its only argument is the port.

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

public final class Echo {
    public static void main(String[] arguments) throws Exception {
        byte[] greeting = "Hello from the JDK.".getBytes(StandardCharsets.US_ASCII);
        int port = Integer.parseInt(arguments[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 4096);
        server.createContext("/echo", exchange -> {
            exchange.getResponseHeaders().set("Content-Type", "text/plain");
            exchange.sendResponseHeaders(200, greeting.length);
            exchange.getResponseBody().write(greeting);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.start();
    }
}
