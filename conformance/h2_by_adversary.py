"""python-hyper's `h2` as a client that breaks the rules. Each case ends with a page for another
client, and with its counter."""

import contextlib
import ssl
from collections.abc import Callable, Iterator

from h2_lab import Lab
from outcomes import Case, expect

try:
    import h2_by_hyper
    from h2_by_hyper import is_page
    from h2_link import (
        CONTINUATION,
        DATA,
        END_HEADERS,
        END_STREAM,
        HEADERS,
        PING,
        RST_STREAM,
        SETTINGS,
        WINDOW_UPDATE,
        Link,
        Raw,
        frame,
    )
except ImportError:
    h2_by_hyper = None

GET = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/")]
POST = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/taken")]
CANCEL, MOST = (8).to_bytes(4, "big"), (2**31 - 1).to_bytes(4, "big")
# Requests that are malformed (RFC 9113 §8.1.1): the stream's error, or 400.
MALFORMED = {
    "a name in upper case": [*GET, ("X-Upper", "1")],
    "a name with a space": [*GET, ("x y", "1")],
    "an empty name": [*GET, ("", "1")],
    "a value with a line break": [*GET, ("x", "1\r\nx-more: 2")],
    "a value with NUL": [*GET, ("x", "1\0")],
    "a value that begins with a space": [*GET, ("x", " 1")],
    "Connection": [*GET, ("connection", "close")],
    "Transfer-Encoding": [*GET, ("transfer-encoding", "chunked")],
    "TE that is not trailers": [*GET, ("te", "gzip")],
    "no path": GET[:3], "no scheme": [GET[0], *GET[2:]], "no method": GET[1:],
    "an empty path": [*GET[:3], (":path", "")],
    "a path without a slash": [*GET[:3], (":path", "index.html")],
    "a path with a space": [*GET[:3], (":path", "/ /")],
    "two methods": [*GET, (":method", "GET")], "two paths": [*GET, (":path", "/")],
    "an unknown pseudo field": [*GET, (":protocol-x", "1")],
    "a pseudo field of responses": [*GET, (":status", "200")],
    "a pseudo field behind another field": [*GET[:3], ("x", "1"), GET[3]],
    "Host that is another": [*GET, ("host", "other.test")],
    "two different lengths": [*GET, ("content-length", "1"), ("content-length", "2")],
    "a length that is no number": [*GET, ("content-length", "x")],
}


def version() -> str:
    return h2_by_hyper.version() if h2_by_hyper else ""


def cases(lab: Lab, way: str) -> Iterator[Case]:
    for name, fields in MALFORMED.items():
        yield f"malformed: {name}", lambda fields=fields: malformed(lab, way, fields)
    yield "malformed: fewer bytes than the length says", lambda: lengths(lab, way, b"1234")
    yield "malformed: more bytes than the length says", lambda: lengths(lab, way, b"123456")
    yield "DATA beyond the window", lambda: beyond(lab, way)
    every: dict[str, tuple[Callable, str, str]] = {
        "rapid reset (CVE-2023-44487)": (rapid_reset, "http2_floods_resets", "ENHANCE_YOUR_CALM"),
        "MadeYouReset (CVE-2025-8671)": (
            made_you_reset, "http2_floods_errors", "ENHANCE_YOUR_CALM"),
        "CONTINUATION without an end (CVE-2024-27316)": (
            continuations, "http2_floods_fields", "ENHANCE_YOUR_CALM"),
        "PING without an end": (pings, "http2_floods_idle", "ENHANCE_YOUR_CALM"),
        "SETTINGS without an end": (settings, "http2_floods_idle", "ENHANCE_YOUR_CALM"),
        "empty DATA without an end": (empty_data, "http2_floods_idle", "ENHANCE_YOUR_CALM"),
        "WINDOW_UPDATE without an end": (windows, "http2_floods_idle", "ENHANCE_YOUR_CALM"),
        "a window beyond 2^31 - 1": (overflow, "http2_errors", "FLOW_CONTROL_ERROR"),
        "streams that count backwards": (backwards, "http2_errors", "STREAM_CLOSED"),
        "a block of fields that is none": (garbage, "http2_errors", "COMPRESSION_ERROR"),
    }
    for name, (attack, counter, code) in every.items():
        yield name, lambda attack=attack, counter=counter, code=code: attacked(
            lab, way, attack, counter, code)


def malformed(lab: Lab, way: str, fields: list[tuple[str, str]]) -> None:
    with Link(lab, way, checks=False) as link:
        stream = link.h2.get_next_available_stream_id()
        link.h2.send_headers(stream, fields, end_stream=True)
        link.send()
        answer = link.answer(stream)
        expect(answer.reset == "PROTOCOL_ERROR" or answer.status == "400", f"{answer}")
        is_page(link.ask("/"))


def lengths(lab: Lab, way: str, body: bytes) -> None:
    with Link(lab, way, "program", checks=False) as link:
        stream = link.request("POST", "/whole", ("content-length", "5"), ends=False)
        link.upload(stream, body)
        answer = link.answer(stream)
        expect(answer.reset == "PROTOCOL_ERROR" or answer.status == "400", f"{answer}")
        expect(link.ask("/slow").body == b"slow", "the connection does not go on")


def beyond(lab: Lab, way: str) -> None:
    with Link(lab, way, "program", checks=False) as link:
        # (Of a handler that reads none of it: what is read gives the window back.)
        stream = link.request("POST", "/unread", ends=False)
        link.frames(*[frame(DATA, stream, bytes(16_384))] * 5)
        expect(link.answer(stream).reset == "FLOW_CONTROL_ERROR", f"{link.answers[stream]}")
        expect(link.ask("/slow").body == b"slow", "the connection does not go on")


def attacked(lab: Lab, way: str, attack: Callable, counter: str, code: str) -> None:
    before = lab.server().counters()
    with Raw(lab, way) as raw:
        # The server may close before all of it is sent.
        with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
            attack(raw)
        found = raw.last_error()
    # (What it says may be lost with the connection, behind bytes that it has not read.)
    expect(found in (code, "no GOAWAY"), f"it is {found}, not {code}")
    # (The line of counters has not all of them.)
    lab.server().moved(before, counter if counter in before else "http2_errors", 1)
    with Link(lab, way) as link:
        is_page(link.ask("/"))


def opened(raw: "Raw", fields: list[tuple[str, str]], stream: int = 1, ends: bool = False) -> bytes:
    flags = END_HEADERS | (END_STREAM if ends else 0)
    return frame(HEADERS, stream, raw.encode(fields), flags)


def rapid_reset(raw: "Raw") -> None:
    for first in range(1, 20_001, 200):
        raw.frames(*(opened(raw, GET, stream, True) + frame(RST_STREAM, stream, CANCEL)
                     for stream in range(first, first + 200, 2)))


def made_you_reset(raw: "Raw") -> None:
    for first in range(1, 20_001, 200):
        raw.frames(*(opened(raw, POST, stream) + frame(WINDOW_UPDATE, stream, MOST)
                     for stream in range(first, first + 200, 2)))


def continuations(raw: "Raw") -> None:
    raw.frames(frame(HEADERS, 1, raw.encode(GET), END_STREAM))
    for _ in range(1_000):
        raw.frames(frame(CONTINUATION, 1, b"\x00\x01a\x01b"))


def pings(raw: "Raw") -> None:
    for _ in range(200):
        raw.frames(*[frame(PING, 0, b"12345678")] * 100)


def settings(raw: "Raw") -> None:
    for _ in range(200):
        raw.frames(*[frame(SETTINGS, 0)] * 100)


def empty_data(raw: "Raw") -> None:
    raw.frames(opened(raw, POST))
    for _ in range(200):
        raw.frames(*[frame(DATA, 1)] * 100)


def windows(raw: "Raw") -> None:
    for _ in range(200):
        raw.frames(*[frame(WINDOW_UPDATE, 0, b"\0\0\0\1")] * 100)


def overflow(raw: "Raw") -> None:
    raw.frames(*[frame(WINDOW_UPDATE, 0, MOST)] * 2)


def backwards(raw: "Raw") -> None:
    raw.frames(opened(raw, GET, 9, True), opened(raw, GET, 7, True))


def garbage(raw: "Raw") -> None:
    raw.frames(frame(HEADERS, 1, b"\xff" * 8, END_HEADERS))
