"""axum's own examples for events and for uploads, and a WebSocket of axum's, through tower's face:
`program/src/examples`.
"""

import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import IO

from h2_lab import Lab, succeeds, tool
from outcomes import Case, expect
from served import MEGABYTE

BEGIN = ["curl", "--silent", "--show-error", "--max-time", "30"]


def version() -> str:
    return "axum 0.8, called by curl" if tool("gustnado-conformance") and tool("curl") else ""


def cases(lab: Lab, way: str) -> Iterator[Case]:
    yield "sse: events come one by one, and end with their client", lambda: events(lab, way)
    yield "stream-to-file: 20 MB as a body", lambda: saved(lab, way)
    yield "stream-to-file: two files of one form", lambda: forms(lab, way)
    yield "multipart-form: a form of 20 MB", lambda: measured(lab, way)
    yield "a path that the example refuses is refused", lambda: refused(lab, way)
    yield "websockets: both sides talk at once, and the server closes", lambda: talked(lab, way)


def curl(lab: Lab, way: str, path: str, *words: str) -> list[str]:
    version = "--http2" if way == "TLS" else "--http2-prior-knowledge"
    url = lab.origin(way, "program") + path
    return [*BEGIN, version, "--cacert", lab.file("root.pem"), "-w",
            "\n%{http_code} %{http_version}", *words, url]


def asked(lab: Lab, way: str, path: str, *words: str) -> tuple[str, str]:
    """The body, and the status with the version."""
    body, _, status = succeeds(curl(lab, way, path, *words)).rpartition("\n")
    return body, status


def large(lab: Lab) -> str:
    path = lab.files / "20m.bin"
    if not path.exists():
        path.write_bytes(MEGABYTE * 20)
    return str(path)


def events(lab: Lab, way: str) -> None:
    command = curl(lab, way, "/sse-example/sse", "--no-buffer")
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        times = []
        while len(times) < 3:
            line = client.stdout.readline()
            expect(line, "the stream is over")
            if line == "data: hi!\n":
                times.append(time.monotonic())
        # The example sends one each second.
        gaps = [after - before for before, after in pairwise(times)]
        expect(all(0.7 < gap < 1.6 for gap in gaps), f"{gaps} seconds between them")
    finally:
        client.kill()
        client.wait()


def saved(lab: Lab, way: str) -> None:
    name = "body " + way
    path = "/stream-to-file/file/" + name.replace(" ", "%20")
    body, status = asked(lab, way, path, "--data-binary", f"@{large(lab)}")
    expect((body, status) == ("", "200 2"), f"{status}: {body}")
    expect((lab.files / "uploads" / name).read_bytes() == MEGABYTE * 20, "other bytes")


def forms(lab: Lab, way: str) -> None:
    one, two = f"one {way}", f"two {way}"
    files = [f"a=@{lab.file('www/1m.bin')};filename={one}",
             f"b=@{lab.file('root.pem')};filename={two}"]
    _, status = asked(lab, way, "/stream-to-file", "-F", files[0], "-F", files[1])
    expect(status == "303 2", status)
    expect((lab.files / "uploads" / one).read_bytes() == MEGABYTE, "other bytes")
    expect((lab.files / "uploads" / two).read_text() == (lab.files / "root.pem").read_text(),
           "other text")


def measured(lab: Lab, way: str) -> None:
    body, status = asked(lab, way, "/multipart-form", "-F", f"file=@{large(lab)};type=a/b")
    expect(status == "200 2", f"{status}: {body}")
    expect(re.search(r"`file` \(`20m.bin`: `a/b`\) is 20971520 bytes", body), body)


def frame(opcode: int, payload: bytes) -> bytes:
    """As a client sends it; with a mask of zeros, payloads are as they are."""
    return bytes([0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def next_frame(stream: IO[bytes]) -> tuple[int, bytes]:
    head = stream.read(2)
    expect(len(head) == 2 and head[1] < 126, f"no short frame of a server: {head!r}")
    return head[0] & 15, stream.read(head[1])


def talked(lab: Lab, way: str) -> None:
    """By HTTP/1.1, which every client of WebSockets speaks."""
    host, port = lab.origin(way, "program").split("://")[1].split(":")
    connection = socket.create_connection((host, int(port)), 10)
    if way == "TLS":
        context = ssl.create_default_context(cafile=lab.file("root.pem"))
        connection = context.wrap_socket(connection, server_hostname=host)
    with connection, connection.makefile("rb") as stream:
        connection.sendall(
            f"GET /websockets/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ticks\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            expect(line, "closed within the head")
            head += line
        head = head.lower()
        for part in (b" 101 ", b"s3pplmbitxaq9kygzzhzrbk+xoo=", b"sec-websocket-protocol: ticks"):
            expect(part in head, f"{part!r} is not in {head!r}")
        expect(next_frame(stream) == (9, b"alive?"), "no ping")
        connection.sendall(frame(10, b"alive?") + frame(1, b"hello") + frame(1, b"end"))
        own = connection.getsockname()[0]
        ticks = [f"tick {tick} for {own}".encode() for tick in range(3)]
        for text in [*ticks, b"pong of 6 bytes", b"heard hello"]:
            got = next_frame(stream)
            expect(got == (1, text), f"{got} in place of {text!r}")
        got = next_frame(stream)
        expect(got == (8, b"\x03\xe8that is all"), f"{got} in place of a close frame")
        connection.sendall(frame(8, b"\x03\xe8"))
        expect(stream.read() == b"", "something behind the close frame")


def refused(lab: Lab, way: str) -> None:
    _, status = asked(lab, way, "/stream-to-file/file/..%2fx", "--data-binary", "x")
    expect(status == "400 2", status)
