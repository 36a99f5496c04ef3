"""A client of HTTP/2 by python-hyper's `h2`, which refuses what the server may not send."""

import socket
import ssl
from collections import defaultdict
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import (
    ConnectionInputs,
    ConnectionState,
    H2Connection,
    H2ConnectionStateMachine,
)
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

# For h2 a connection is over with GOAWAY, although responses under way still come (RFC 9113 §6.8).
H2ConnectionStateMachine._transitions[
    ConnectionState.CLIENT_OPEN, ConnectionInputs.RECV_GOAWAY] = (None, ConnectionState.CLIENT_OPEN)


@dataclass
class StreamAnswer:
    status: int = 0
    fields: dict = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False
    reset: int | None = None


class Link:
    """A connection, in clear unless it has a context of TLS. Every wait ends after ten seconds."""

    def __init__(self, port, context=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.scheme = "http"
        if context:
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            assert self.socket.selected_alpn_protocol() == "h2"
            self.scheme = "https"
        self.h2 = H2Connection(H2Configuration(header_encoding="latin-1"))
        self.answers = defaultdict(StreamAnswer)
        self.has_ended = False
        self.h2.initiate_connection()
        self.send()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self):
        self.socket.sendall(self.h2.data_to_send())

    def request(self, path, method="GET", fields=(), ends=True):
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", self.scheme), (":authority", "localhost"),
                (":path", path), *fields]
        self.h2.send_headers(stream, head, end_stream=ends)
        self.send()
        return stream

    def upload(self, stream, body, ends=True):
        """Sends a body as windows allow."""
        while body:
            room = min(self.h2.local_flow_control_window(stream), 16_384, len(body))
            if room <= 0:
                self.receive()
                continue
            self.h2.send_data(stream, body[:room])
            body = body[room:]
            self.send()
        if ends:
            self.h2.end_stream(stream)
            self.send()

    def reset(self, stream):
        self.h2.reset_stream(stream, 8)
        self.send()

    def receive(self):
        came = self.socket.recv(65536)
        assert came, "the connection is over"
        for event in self.h2.receive_data(came):
            self.note(event)
        self.send()

    def note(self, event):
        if isinstance(event, ConnectionTerminated):
            self.has_ended = True
            return
        answer = self.answers[getattr(event, "stream_id", 0)]
        if isinstance(event, ResponseReceived):
            answer.fields = dict(event.headers)
            answer.status = int(answer.fields[":status"])
        elif isinstance(event, DataReceived):
            answer.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            answer.is_whole = True
        elif isinstance(event, StreamReset):
            answer.reset = event.error_code

    def until(self, is_there):
        while not is_there():
            self.receive()

    def answer(self, stream):
        answer = self.answers[stream]
        self.until(lambda: answer.is_whole or answer.reset is not None)
        return answer

    def get(self, path, fields=()):
        return self.answer(self.request(path, fields=fields))

    def post(self, path, body, fields=()):
        stream = self.request(path, "POST", fields, ends=False)
        self.upload(stream, body)
        return self.answer(stream)


def context_of(certificate):
    return ssl.create_default_context(cafile=certificate)
