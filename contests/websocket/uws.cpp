// An echo and a broadcast over WebSockets by uWebSockets, on one thread: what
// contests/websocket.toml measures. contests/uws.sh builds it.
//
//     uws PORT

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "App.h"

struct Nothing {};
using Socket = uWS::WebSocket<false, true, Nothing>;

int main(int count, char **words) {
    const int port = count > 1 ? std::atoi(words[1]) : 0;
    uWS::App app;
    uWS::App::WebSocketBehavior<Nothing> echo;
    echo.compression = uWS::DISABLED;
    echo.maxPayloadLength = 16 << 20;
    echo.idleTimeout = 0;
    echo.message = [](Socket *socket, std::string_view message, uWS::OpCode kind) {
        socket->send(message, kind);
    };
    uWS::App::WebSocketBehavior<Nothing> chat = {};
    chat.compression = uWS::DISABLED;
    chat.maxPayloadLength = 16 << 20;
    chat.idleTimeout = 0;
    chat.open = [](Socket *socket) { socket->subscribe("room"); };
    chat.message = [&app](Socket *, std::string_view message, uWS::OpCode kind) {
        app.publish("room", message, kind);
    };
    app.ws<Nothing>("/echo", std::move(echo));
    app.ws<Nothing>("/chat", std::move(chat));
    app.listen("127.0.0.1", port, [port](auto *listener) {
        if (!listener) {
            std::cerr << "port " << port << " is taken\n";
            std::exit(1);
        }
    });
    app.run();
}
