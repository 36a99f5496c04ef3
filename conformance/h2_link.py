"""A connection by python-hyper's `h2`: its own state machine judges each frame of the server, and
frames that it would never send can be sent beside it."""

import contextlib
import socket
import ssl
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from h2_lab import Lab, host
from hpack import Encoder
from outcomes import Unmet, expect

ERRORS = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
          "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
          "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
PRIORITY_UPDATE, UNKNOWN = 16, 0xbe
ACK, END_STREAM, END_HEADERS = 1, 1, 4


@dataclass
class Answer:
    status: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    interim: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    body: bytes = b""
    trailers: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False
    reset: str = ""


def open_socket(lab: Lab, way: str, kind: str = "http2") -> socket.socket:
    plain = socket.create_connection((host(way), lab.port(way, kind)), timeout=10)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way != "TLS":
        return plain
    context = ssl.create_default_context(cafile=lab.file("root.pem"))
    context.set_alpn_protocols(["h2"])
    sealed = context.wrap_socket(plain, server_hostname="localhost")
    expect(sealed.selected_alpn_protocol() == "h2", "another protocol")
    return sealed


class Link:
    """Every wait ends: the socket has a time-out of ten seconds."""

    def __init__(self, lab: Lab, way: str, kind: str = "http2", gives_window: bool = True,
                 settings: dict[int, int] | None = None, checks: bool = True):
        self.way, self.gives_window = way, gives_window
        self.socket = open_socket(lab, way, kind)
        self.h2 = H2Connection(H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=checks,
            normalize_outbound_headers=checks))
        self.h2.initiate_connection()
        self.answers: dict[int, Answer] = defaultdict(Answer)
        self.pings: list[bytes] = []
        self.goaway: ConnectionTerminated | None = None
        self.goaways: list[ConnectionTerminated] = []
        self.is_over = False
        self.acks = 0
        self.send()
        if settings:
            # (h2 holds the server to them from its word on.)
            self.h2.update_settings(settings)
            self.send()
            self.until(lambda: self.acks == 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, more: bytes = b"") -> None:
        self.socket.sendall(self.h2.data_to_send() + more)

    def frames(self, *frames: bytes) -> None:
        """Sends frames that the state machine does not know of."""
        self.send(b"".join(frames))

    def request(self, method: str, path: str, *fields: tuple[str, str], ends: bool = True) -> int:
        stream = self.h2.get_next_available_stream_id()
        scheme = "https" if self.way == "TLS" else "http"
        head = [(":method", method), (":scheme", scheme), (":authority", "localhost"),
                (":path", path), *fields]
        self.h2.send_headers(stream, head, end_stream=ends)
        self.send()
        return stream

    def upload(self, stream: int, body: bytes, ends: bool = True, **more: int) -> None:
        """Sends a body as windows allow."""
        while body:
            room = min(self.h2.local_flow_control_window(stream) - more.get("pad_length", -1) - 1,
                       self.h2.max_outbound_frame_size - 256, len(body))
            if room <= 0:
                expect(not self.answers[stream].reset, "the stream is reset")
                self.receive()
                continue
            self.h2.send_data(stream, body[:room], **more)
            body = body[room:]
            self.send()
        if ends:
            self.h2.end_stream(stream)
            self.send()

    def receive(self) -> None:
        """Reads once, and notes what it means. What `h2` refuses is the server's fault."""
        came = self.socket.recv(65536)
        if not came:
            self.is_over = True
            return
        try:
            events = self.h2.receive_data(came)
        except H2Error as error:
            raise Unmet(f"h2 refuses what comes: {type(error).__name__}: {error}") from error
        for event in events:
            self.note(event)
        self.send()

    def note(self, event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaway = event
            self.goaways.append(event)
            return
        if isinstance(event, PingAckReceived):
            self.pings.append(event.ping_data)
        self.acks += isinstance(event, SettingsAcknowledged)
        answer = self.answers[getattr(event, "stream_id", None) or 0]
        if isinstance(event, InformationalResponseReceived):
            answer.interim.append((dict(event.headers)[":status"], dict(event.headers)))
        elif isinstance(event, ResponseReceived):
            answer.fields = dict(event.headers)
            answer.status = answer.fields[":status"]
        elif isinstance(event, DataReceived):
            answer.body += event.data
            if self.gives_window and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, StreamEnded):
            answer.is_whole = True
        elif isinstance(event, StreamReset):
            answer.reset = name_of(event.error_code)

    def until(self, is_there) -> None:
        while not is_there():
            expect(not self.is_over, f"the connection is over: {self.told()}")
            self.receive()

    def answer(self, stream: int) -> Answer:
        answer = self.answers[stream]
        self.until(lambda: answer.is_whole or answer.reset)
        return answer

    def ask(self, path: str, *fields: tuple[str, str], method: str = "GET") -> Answer:
        return self.answer(self.request(method, path, *fields))

    def post(self, path: str, body: bytes, *fields: tuple[str, str], **more: int) -> Answer:
        stream = self.request("POST", path, *fields, ends=False)
        self.upload(stream, body, **more)
        return self.answer(stream)

    def told(self) -> str:
        """The last GOAWAY in words."""
        if not self.goaway:
            return "no GOAWAY"
        debug = (self.goaway.additional_data or b"").decode(errors="replace")
        return f"{name_of(self.goaway.error_code)}: {debug}"

    def until_closed(self) -> None:
        with contextlib.suppress(ConnectionError):
            while not self.is_over:
                self.receive()

    def ended_by(self, *codes: str) -> None:
        """Expects that the server ends the connection with one of these errors."""
        self.until_closed()
        expect(self.goaway and name_of(self.goaway.error_code) in codes, self.told())


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    head = [len(payload).to_bytes(3, "big"), bytes([kind, flags]), stream.to_bytes(4, "big")]
    return b"".join([*head, payload])


class Raw:
    """A connection without a state machine: frames as they are told to be."""

    def __init__(self, lab: Lab, way: str, kind: str = "http2"):
        self.socket = open_socket(lab, way, kind)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.encode, self.unread = Encoder().encode, b""
        self.frames(frame(SETTINGS, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def frames(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def read(self) -> Iterator[tuple[int, int, int, bytes]]:
        """The kinds, flags, streams and payloads of frames, until the server closes."""
        more = b"begin"
        while more:
            while len(self.unread) >= (end := 9 + int.from_bytes(self.unread[:3], "big")):
                head, payload = self.unread[:9], self.unread[9:end]
                self.unread = self.unread[end:]
                yield head[3], head[4], int.from_bytes(head[5:9], "big"), payload
            more = b""
            with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
                more = self.socket.recv(65536)
            self.unread += more

    def last_error(self) -> str:
        """Reads until the server closes, and returns the error of its last GOAWAY."""
        codes = (payload[4:8] for kind, _, _, payload in self.read() if kind == GOAWAY)
        *_, last = (b"", *codes)
        return name_of(int.from_bytes(last, "big")) if last else "no GOAWAY"


def name_of(code: int) -> str:
    return ERRORS[code] if code < len(ERRORS) else str(code)
