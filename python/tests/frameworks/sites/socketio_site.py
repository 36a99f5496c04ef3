"""python-socketio by WebSocket alone, beside the ten requests on Starlette."""

import socketio
from starlette_site import app as site

server = socketio.AsyncServer(async_mode="asgi", cors_allowed_origins=[])
app = socketio.ASGIApp(server, site)


@server.event
async def shout(sid, text):
    await server.emit("shouted", text.upper())
    return len(text)


def talk(connect):
    with socketio.SimpleClient() as client:
        client.connect(connect.url("http"), transports=["websocket"])
        assert client.transport == "websocket"
        count = client.call("shout", "hello", timeout=10)
        yield "Socket.IO: event and answer", f"{count} {client.receive(timeout=10)}"
        client.emit("shout", "x" * 100_000)
        yield "Socket.IO: long", str(len(client.receive(timeout=10)[1]))
