"""What no client should send: garbage, half handshakes, changed records, plain HTTP. Each has its
alert and its counter, and the server goes on serving."""

import contextlib
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Iterator

import by_python
import handmade
from handmade import ALERT, CONTENT, HANDSHAKE, SUITES_12, SUITES_13, hello, record
from outcomes import Case, expect
from served import HOST, Lab, Server

NAME = "attacks"
SEED = 20_240_611
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def version() -> str:
    return "the suite's own"


class Sealed:
    """A connection whose sealed bytes can be changed before they leave."""

    def __init__(self, lab: Lab, told: str):
        self.plain = handmade.Plain(lab.server("sites").port)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.link = by_python.context(lab, told).wrap_bio(
            self.incoming, self.outgoing, server_hostname="localhost")
        self._drive(self.link.do_handshake)

    def _drive(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.plain.send(self.outgoing.read())
                more = self.plain.socket.recv(65536)
                self.incoming.write(more) if more else self.incoming.write_eof()
            finally:
                if self.outgoing.pending:
                    self.plain.send(self.outgoing.read())

    def seal(self, content: bytes) -> bytes:
        """Content as sealed records, which are not sent."""
        self.link.write(content)
        return self.outgoing.read()

    def alert(self) -> str:
        """What the library says of the alert that comes next."""
        try:
            while self._drive(lambda: self.link.read(65536)):
                pass
        except ssl.SSLEOFError:
            return "end"
        except ssl.SSLError as error:
            return (error.reason or "").lower().removeprefix("tlsv1_alert_").removeprefix(
                "sslv3_alert_").removeprefix("ssl/tls_alert_")
        except ConnectionError:
            return "end"
        return "close_notify"

    def close(self) -> None:
        self.plain.socket.close()


def changed(lab: Lab, told: str, change, wanted: tuple[str, ...]) -> None:
    """Expects an alert for a record that `change` makes of a sealed one; then a page."""
    link = Sealed(lab, told)
    try:
        link.plain.send(change(link.seal(ASK)))
        expect((found := link.alert()) in wanted, f"it is {found}, not {wanted[0]}")
    finally:
        link.close()
    by_python.page(lab, told)


def flipped(at: int):
    def change(sealed: bytes) -> bytes:
        other = bytearray(sealed)
        other[at] ^= 1
        return bytes(other)
    return change


def longer(_: bytes) -> bytes:
    return struct.pack("!BHH", CONTENT, 0x0303, 16384 + 2048 + 1) + bytes(16384 + 2049)


def cases(lab: Lab) -> Iterator[Case]:
    mac = ("bad_record_mac",)
    for told in by_python.VERSIONS:
        for name, change, wanted in [
            ("a changed tag", flipped(-1), mac), ("a changed first byte", flipped(5), mac),
            ("a record that comes twice", lambda sealed: sealed + sealed, mac),
            ("a record of the wrong key", lambda sealed: sealed[:5] + os.urandom(len(sealed) - 5),
             mac),
            ("a record longer than any may be", longer, ("record_overflow",)),
            ("a record of an unknown type", lambda sealed: b"\x63" + sealed[1:],
             ("unexpected_message", "decode_error")),
            ("a record of 1 byte", lambda _: record(CONTENT, b"x", 0x0303),
             (*mac, "decode_error")),
            ("alerts in plain", lambda _: record(ALERT, b"\2\x28", 0x0303),
             (*mac, "unexpected_message")),
        ]:
            yield f"{told}: {name}", lambda told=told, change=change, wanted=wanted: changed(
                lab, told, change, wanted)
    yield "garbage", lambda: garbage(lab, lab.server("sites"))
    yield "hellos with changed bytes", lambda: mutants(lab, lab.server("sites"))
    yield "plain HTTP: 400, and it is counted", lambda: plain_http(lab)
    yield "connections that end within a hello", lambda: cut(lab, lab.server("sites"))
    count = 300 if lab.quick else 3_000
    yield f"{count} handshakes that stop half-way: the oldest ones give way", lambda: halves(
        lab, lab.server("small"), count)
    yield "a handshake that waits is ended by its time", lambda: slow(lab, lab.server("small"))


def still_serves(lab: Lab, server: Server) -> None:
    """A page, by a server of any kind."""
    made = by_python.context(lab, "TLS 1.3")
    with socket.create_connection((HOST, server.port), timeout=10) as plain:
        with made.wrap_socket(plain, server_hostname="localhost") as link:
            link.sendall(ASK)
            expect(b"The page is here." in by_python.read_response(link), "another page")


def garbage(lab: Lab, server: Server) -> None:
    made = random.Random(SEED)
    count = 200 if lab.quick else 2_000
    before = server.counters()
    for _ in range(count):
        content = made.randbytes(made.randrange(1, 2_000))
        with handmade.Plain(server.port) as link, contextlib.suppress(ConnectionError):
            link.send(content)
            link.socket.shutdown(socket.SHUT_WR)
            while link.record():
                pass
    server.moved(before, "handshakes_failed", count)
    still_serves(lab, server)


def mutants(lab: Lab, server: Server) -> None:
    """Each has to end, by an alert or with the connection; many are still good hellos."""
    made = random.Random(SEED)
    count = 200 if lab.quick else 2_000
    before = server.counters()
    for _ in range(count):
        message = bytearray(record(HANDSHAKE, hello(
            SUITES_13 + SUITES_12, versions=[0x0304, 0x0303], name="localhost")))
        for _ in range(made.randrange(1, 4)):
            message[made.randrange(5, len(message))] = made.randrange(256)
        with handmade.Plain(server.port) as link, contextlib.suppress(ConnectionError):
            link.send(bytes(message))
            link.socket.shutdown(socket.SHUT_WR)
            while link.record():
                pass
    server.moved(before, "handshakes_failed", count)
    still_serves(lab, server)


def plain_http(lab: Lab) -> None:
    server = lab.server("sites")
    before = server.counters()
    with handmade.Plain(server.port) as link:
        link.send(ASK)
        text = b""
        while more := link.socket.recv(65536):
            text += more
    expect(text.startswith(b"HTTP/1.1 400 "), f"{text[:200]!r}")
    server.moved(before, "handshakes_plain", 1)
    server.moved(before, "handshakes_failed", 1)
    still_serves(lab, server)


def cut(lab: Lab, server: Server) -> None:
    whole = record(HANDSHAKE, hello(SUITES_13, versions=[0x0304], name="localhost"))
    before = server.counters()
    for length in range(1, len(whole)):
        with handmade.Plain(server.port) as link:
            link.send(whole[:length])
    server.moved(before, "handshakes_failed", len(whole) - 1)
    still_serves(lab, server)


def halves(lab: Lab, server: Server, count: int) -> None:
    """They stay open, 200 at a time, behind the server's part; 64 may be under way."""
    whole = record(HANDSHAKE, hello(SUITES_12))
    before, held = server.counters(), []
    try:
        for _ in range(count):
            link = handmade.Plain(server.port)
            with contextlib.suppress(ConnectionError):
                link.send(whole)
            held.append(link)
            if len(held) > 200:
                held.pop(0).socket.close()
        # (Where many wait to be accepted, a new handshake may be the oldest one soon.)
        server.rests("handshakes_evicted")
        still_serves(lab, server)
    finally:
        for link in held:
            link.socket.close()
    server.moved(before, "handshakes_evicted", 100)
    server.moved(before, "handshakes_failed", count)
    still_serves(lab, server)


def slow(lab: Lab, server: Server) -> None:
    before, began = server.counters(), time.monotonic()
    with handmade.Plain(server.port) as link:
        link.send(record(HANDSHAKE, hello(SUITES_12))[:20])
        expect(link.record() is None, "it says something")
    took = time.monotonic() - began
    expect(0.8 < took < 3, f"it took {took:.1f} s, and the time is 1 s")
    server.moved(before, "handshakes_slow", 1)
    still_serves(lab, server)
