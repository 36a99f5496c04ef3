"""A client of WebSockets by wsproto's frames: over a connection, over TLS, and over a stream of
HTTP/2. What the server says is seen frame by frame."""

import base64
import os
import socket
from dataclasses import dataclass, field

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.extensions import PerMessageDeflate

# How the client reaches the server.
CARRIERS = ["plain", "tls", "h2c", "h2"]


@dataclass
class Handshake:
    """The server's answer."""
    status: int
    fields: dict = field(default_factory=dict)
    # All Set-Cookie and the like, since a name may come more than once.
    pairs: list = field(default_factory=list)
    body: bytes = b""


class OverConnection:
    """A WebSocket by an upgrade in HTTP/1.1."""

    def __init__(self, port, context=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def ask(self, path, fields):
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: Upgrade",
                 "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
                 *(f"{name}: {value}" for name, value in fields)]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        came = b""
        while b"\r\n\r\n" not in came:
            piece = self.socket.recv(65536)
            assert piece, f"the connection ended within a head: {came!r}"
            came += piece
        head, _, rest = came.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        pairs = [tuple(line.split(": ", 1)) for line in lines[1:]]
        fields = {name.lower(): value for name, value in pairs}
        answer = Handshake(int(lines[0].split()[1]), fields, pairs)
        if answer.status == 101:
            return answer, rest
        if "content-length" in fields:
            while len(rest) < int(fields["content-length"]):
                rest += self.socket.recv(65536)
        elif fields.get("transfer-encoding") == "chunked":
            while not rest.endswith(b"0\r\n\r\n"):
                rest += self.socket.recv(65536)
            rest = b"".join(rest.split(b"\r\n")[1:-2:2])
        answer.body = rest
        return answer, b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """Returns bytes; none where the server has closed."""
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""

    def close(self):
        self.socket.close()


class OverStream:
    """A WebSocket over a stream of HTTP/2 (RFC 8441)."""

    def __init__(self, port, context=None):
        from http2_link import Link

        self.link, self.stream, self.read = Link(port, context), None, 0

    def ask(self, path, fields):
        link = self.link
        link.until(lambda: link.h2.remote_settings.get(8) == 1)
        self.stream = link.h2.get_next_available_stream_id()
        head = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", link.scheme),
                (":authority", "localhost"), (":path", path), ("sec-websocket-version", "13"),
                *((name.lower(), value) for name, value in fields)]
        link.h2.send_headers(self.stream, head)
        link.send()
        answer = link.answers[self.stream]
        link.until(lambda: answer.status)
        if answer.status != 200:
            link.answer(self.stream)
        found = Handshake(answer.status, answer.fields, list(answer.fields.items()), answer.body)
        return found, b""

    def send(self, data):
        self.link.upload(self.stream, data, ends=False)

    def receive(self):
        answer = self.link.answers[self.stream]
        while len(answer.body) == self.read:
            if answer.is_whole or answer.reset is not None:
                return b""
            self.link.receive()
        piece = answer.body[self.read:]
        self.read = len(answer.body)
        return piece

    def close(self):
        self.link.socket.close()


class WebSocketLink:
    """- `carrier`: one of `CARRIERS`.
    - `deflates`: whether it offers to compress messages."""

    def __init__(self, port, path="/", fields=(), carrier="plain", context=None, deflates=False):
        over = OverStream if carrier in ("h2c", "h2") else OverConnection
        self.over = over(port, context if carrier in ("tls", "h2") else None)
        extensions = []
        if deflates:
            deflate = PerMessageDeflate()
            fields = [*fields, ("Sec-WebSocket-Extensions", f"{deflate.name}; {deflate.offer()}")]
            extensions = [deflate]
        self.answer, rest = self.over.ask(path, fields)
        if deflates and "sec-websocket-extensions" in self.answer.fields:
            deflate.finalize(self.answer.fields["sec-websocket-extensions"])
        self.frames = Connection(ConnectionType.CLIENT, extensions)
        self.pongs, self.pieces = [], b""
        if rest:
            self.frames.receive_data(rest)
        self.events = self.frames.events()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.close()

    @property
    def is_open(self):
        return self.answer.status in (101, 200)

    def send(self, message):
        kind = TextMessage if isinstance(message, str) else BytesMessage
        self.send_event(kind(data=message))

    def send_event(self, event):
        self.over.send(self.frames.send(event))

    def receive(self, answers_close=True):
        """Returns the next message, a `CloseConnection`, or None where the server has gone without
        one. Pings are answered."""
        whole = None
        while True:
            for event in self.events:
                if isinstance(event, Ping):
                    self.send_event(event.response())
                elif isinstance(event, Pong):
                    self.pongs.append(bytes(event.payload))
                elif isinstance(event, CloseConnection):
                    if answers_close:
                        self.send_event(event.response())
                    return event
                else:
                    whole = event.data if whole is None else whole + event.data
                    if event.message_finished:
                        return whole if isinstance(whole, str) else bytes(whole)
            came = self.over.receive()
            if not came:
                return None
            self.frames.receive_data(came)
            self.events = self.frames.events()

    def close(self, code=1000, reason=None):
        """Closes in order. Returns the server's answer."""
        self.send_event(CloseConnection(code, reason))
        while not isinstance(answer := self.receive(answers_close=False), CloseConnection):
            assert answer is not None, "it has not answered"
        return answer
