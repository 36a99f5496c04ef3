"""Python's ssl: versions, half-closed connections, close_notify, and the order of ends."""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator

from outcomes import Case, expect
from served import HOST, MEGABYTE, Lab

NAME = "Python ssl"
VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}
ASK = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
CLOSE = b"Connection: close\r\n"


def version() -> str:
    return ssl.OPENSSL_VERSION


def context(lab: Lab, told: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=lab.file("root.pem"))
    made.minimum_version = made.maximum_version = VERSIONS[told]
    return made


@contextlib.contextmanager
def connected(lab: Lab, told: str, made: ssl.SSLContext | None = None, name: str = "localhost",
              session: ssl.SSLSession | None = None) -> Iterator[ssl.SSLSocket]:
    made = made or context(lab, told)
    with socket.create_connection((HOST, lab.server("sites").port), timeout=10) as plain:
        # A missing close_notify is an error here, not the end.
        with made.wrap_socket(plain, server_hostname=name, session=session,
                              suppress_ragged_eofs=False) as link:
            yield link


def read_all(link: ssl.SSLSocket) -> bytes:
    parts = []
    while part := link.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_response(link: ssl.SSLSocket) -> bytes:
    """The content of one response, by its length."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = link.recv(65536)
        expect(part, f"it ends within a head: {text!r}")
        text += part
    head, _, content = text.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(content) < length:
        part = link.recv(65536)
        expect(part, f"it ends after {len(content)} of {length} bytes")
        content += part
    return content


def cases(lab: Lab) -> Iterator[Case]:
    for told in VERSIONS:
        for name, check in [
            ("a page", page), ("1 MB down", down), ("1 MB up", up),
            ("the server ends by close_notify", notified),
            ("1 MB and the end: nothing is cut off", whole_with_end),
            ("a client's close_notify is answered by one", answered),
            ("a client that has closed its direction gets its response", half_closed),
            ("close_notify with the request, and no end of TCP", half_closed_only),
            ("a connection without close_notify is no harm", torn),
            ("100 requests, a byte of each in a record", in_bytes),
            ("a session is resumed", resumed), ("requests in one record", together),
            ("a client's certificate, required", with_certificate),
            ("a client that offers authentication after the handshake", post_handshake),
            ("a channel binding, and no compression", binding),
        ]:
            yield f"{told}: {name}", lambda check=check, told=told: check(lab, told)


def page(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        expect(link.version() == told.replace("TLS ", "TLSv"), f"{link.version()}")
        link.sendall(ASK % (b"", b""))
        expect(b"The page is here." in read_response(link), "another page")


def down(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        for _ in range(3):
            link.sendall(ASK % (b"1m.bin", b""))
            expect(read_response(link) == MEGABYTE, "other bytes")


def up(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        for _ in range(3):
            link.sendall(b"POST /taken HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                         % len(MEGABYTE) + MEGABYTE)
            expect(read_response(link) == b"taken\n", "another response")


def notified(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        link.sendall(ASK % (b"", CLOSE))
        # (Raises SSLEOFError where the connection ends without close_notify.)
        expect(b"The page is here." in read_all(link), "another page")


def whole_with_end(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        link.sendall(ASK % (b"1m.bin", CLOSE))
        expect(read_all(link).endswith(b"\r\n\r\n" + MEGABYTE), "other bytes")


def answered(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        link.sendall(ASK % (b"", b""))
        read_response(link)
        # Sends close_notify, and waits for the server's.
        plain = link.unwrap()
        expect(plain.recv(1) == b"", "bytes behind the end")


def half_closed(lab: Lab, told: str, ends_tcp: bool = True) -> None:
    """Sends a request and close_notify at once; the response has to come, and then the end."""
    with socket.create_connection((HOST, lab.server("sites").port), timeout=1) as plain:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        link = context(lab, told).wrap_bio(incoming, outgoing, server_hostname="localhost")
        while True:
            try:
                link.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        plain.sendall(outgoing.read())
        link.write(ASK % (b"1m.bin", b""))
        with contextlib.suppress(ssl.SSLWantReadError):
            link.unwrap()
        plain.sendall(outgoing.read())
        if ends_tcp:
            plain.shutdown(socket.SHUT_WR)
        received = 0
        try:
            while more := plain.recv(65536):
                received += len(more)
        except TimeoutError:
            expect(False, f"{received} bytes, and no end")
        expect(received > len(MEGABYTE), f"only {received} bytes came")


def half_closed_only(lab: Lab, told: str) -> None:
    half_closed(lab, told, ends_tcp=False)


def torn(lab: Lab, told: str) -> None:
    for _ in range(20):
        with connected(lab, told) as link:
            link.sendall((ASK % (b"1m.bin", b""))[:30])
            os.close(link.detach())
    page(lab, told)


def in_bytes(lab: Lab, told: str) -> None:
    asked = ASK % (b"", b"")
    with connected(lab, told) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(100):
            for byte in asked:
                link.send(bytes([byte]))
            expect(b"The page is here." in read_response(link), "another page")


def resumed(lab: Lab, told: str) -> None:
    made = context(lab, told)
    with connected(lab, told, made) as link:
        link.sendall(ASK % (b"", b""))
        read_response(link)
        session = link.session
    with connected(lab, told, made, session=session) as link:
        expect(link.session_reused, "it is not resumed")
        link.sendall(ASK % (b"", b""))
        expect(b"The page is here." in read_response(link), "another page")


def together(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        link.sendall((ASK % (b"", b"")) * 50)
        link.sendall(ASK % (b"", CLOSE))
        expect(read_all(link).count(b"The page is here.") == 51, "pages are missing")


def with_certificate(lab: Lab, told: str) -> None:
    made = context(lab, told)
    made.load_cert_chain(lab.file("good.pem"), lab.file("good.key"))
    with connected(lab, told, made, "required.test") as link:
        link.sendall((ASK % (b"", CLOSE)).replace(b"localhost", b"required.test"))
        expect(b"The page is here." in read_all(link), "another page")
    try:
        with connected(lab, told, name="required.test") as link:
            link.sendall(ASK % (b"", CLOSE))
            read_all(link)
    except (ssl.SSLError, ConnectionError):
        return
    expect(False, "a client without one is served")


def post_handshake(lab: Lab, told: str) -> None:
    made = context(lab, told)
    made.post_handshake_auth = True
    with connected(lab, told, made) as link:
        link.sendall(ASK % (b"", CLOSE))
        expect(b"The page is here." in read_all(link), "another page")


def binding(lab: Lab, told: str) -> None:
    with connected(lab, told) as link:
        expect(len(link.get_channel_binding("tls-unique") or b"") >= 12, "none")
        expect(link.compression() is None, "it is compressed")
