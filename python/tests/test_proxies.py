"""The client's address behind a proxy, as applications of each kind see it."""

import json
import socket
import struct
import sys
import time

import pytest
from conftest import Answer, read_all

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def told(request):
    return [request.client, request.scheme, request.public_host]
"""

LATER = NATIVE.replace("def told", "async def told")

ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    text = json.dumps([scope["client"][0], scope["scheme"], fields["host"]]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"""

WSGI = """
import json

def app(environ, start_response):
    start_response("200 OK", [])
    assert environ.get("REMOTE_PORT", "1") != "0"
    told = [environ["REMOTE_ADDR"], environ["wsgi.url_scheme"], environ["HTTP_HOST"]]
    return [json.dumps(told).encode()]
"""

KINDS = {
    "native": (NATIVE, ()), "native-later": (LATER, ()), "asgi": (ASGI, ()), "wsgi": (WSGI, ()),
    "wsgi-threads": (WSGI, ("--threads", "4")),
}
FIELDS = "X-Forwarded-For: 1.1.1.1, 192.0.2.9\r\nX-Forwarded-Proto: https\r\n"


@pytest.fixture(params=KINDS)
def run_kind(run, request):
    program, options = KINDS[request.param]
    return lambda *more, **named: run(program, *options, *more, **named)


def told(answer):
    assert answer.status == 200
    return json.loads(answer.body)[:2]


def test_a_proxy_that_is_believed_says_who_the_client_is(run_kind):
    server = run_kind("--forwarded-allow-ips", "127.0.0.1,10.0.0.0/8")
    assert told(server.get("/", FIELDS)) == ["192.0.2.9", "https"]
    assert told(server.get("/")) == ["127.0.0.1", "http"]


def test_nobody_is_believed_unless_that_was_said(run_kind):
    assert told(run_kind().get("/", FIELDS)) == ["127.0.0.1", "http"]


def test_fields_of_somebody_else_than_the_proxy_count_for_nothing(run_kind):
    server = run_kind("--forwarded-allow-ips", "10.0.0.0/8,unix")
    assert told(server.get("/", FIELDS)) == ["127.0.0.1", "http"]


def test_what_a_client_puts_before_the_proxy_s_words_is_not_believed(run):
    server = run(NATIVE, "--forwarded-allow-ips", "127.0.0.1,10.0.0.0/8")
    made_up = "X-Forwarded-For: 203.0.113.9\r\n"
    passed_on = made_up + "X-Forwarded-For: 192.0.2.9, 10.1.2.3\r\n"
    assert told(server.get("/", passed_on))[0] == "192.0.2.9"
    # Of the other kind of fields nothing is read.
    assert told(server.get("/", "Forwarded: for=203.0.113.9;proto=https\r\n")) == [
        "127.0.0.1", "http"]


def test_the_fields_of_rfc_7239(run):
    server = run(NATIVE, "--forwarded-allow-ips", "127.0.0.1", "--forwarded-fields", "forwarded")
    fields = 'Forwarded: for=1.1.1.1, for="[2001:db8::9]:4711";proto=https;host=shop.example\r\n'
    assert json.loads(server.get("/", fields).body) == [
        "2001:db8::9", "https", "shop.example"]
    assert told(server.get("/", FIELDS)) == ["127.0.0.1", "http"]


def test_a_proxy_over_a_unix_socket(start, tmp_path):
    (tmp_path / "site_app.py").write_text(WSGI)
    path = tmp_path / "site.sock"
    start([sys.executable, "-m", "gustnado", "run", "--uds", path, "--forwarded-allow-ips", "unix",
           "site_app:app"], waits=False)
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        link.sendall(f"GET / HTTP/1.1\r\nHost: a\r\n{FIELDS}Connection: close\r\n\r\n".encode())
        assert told(Answer(read_all(link))) == ["192.0.2.9", "https"]


# --- The PROXY header.

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
VERSION_1 = b"PROXY TCP4 192.0.2.9 192.0.2.1 4711 443\r\n"


def tlv(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


def version_2(command=1, extra=b""):
    """The binary form: signature, version and command, family, length, addresses, and more."""
    names = socket.inet_aton("192.0.2.9") + socket.inet_aton("192.0.2.1")
    names += struct.pack("!HH", 4711, 443)
    head = bytes([0x20 | command, 0x11]) + struct.pack("!H", len(names + extra))
    return b"\r\n\r\n\0\r\nQUIT\n" + head + names + extra


def test_a_connection_begins_with_who_its_client_is(run_kind):
    server = run_kind("--proxy-protocol", "--proxy-allow-from", "127.0.0.1", waits=False)
    wait_until_listening(server)
    for header in (VERSION_1, version_2(), version_2(extra=tlv(4, b"padding"))):
        assert told(Answer(server.ask(header + REQUEST)))[0] == "192.0.2.9", header
    # A proxy's health check has the proxy's own address.
    for header in (b"PROXY UNKNOWN\r\n", version_2(command=0)):
        assert told(Answer(server.ask(header + REQUEST)))[0] == "127.0.0.1", header
    # For all requests of a connection.
    with server.connect() as link:
        link.sendall(version_2() + 2 * REQUEST.replace(b"Connection: close\r\n", b"") + REQUEST)
        assert read_all(link).count(b"192.0.2.9") == 3


def test_who_begins_without_a_header_is_refused(run):
    server = run(NATIVE, "--proxy-protocol", "--proxy-allow-from", "127.0.0.0/8", waits=False)
    wait_until_listening(server)
    assert Answer(server.ask(REQUEST)).status == 400
    assert Answer(server.ask(b"PROXY TCP4 nonsense\r\n" + REQUEST)).status == 400


def test_a_header_from_somebody_else_than_the_proxy_is_refused(run):
    server = run(NATIVE, "--proxy-protocol", "--proxy-allow-from", "10.0.0.0/8", waits=False)
    wait_until_listening(server)
    for header in (VERSION_1, version_2()):
        assert Answer(server.ask(header + REQUEST)).status == 403


def test_a_server_that_believes_any_proxy_does_not_start(run):
    server = run(NATIVE, "--proxy-protocol", waits=False)
    assert server.process.wait(20) != 0
    assert "--proxy-allow-from 10.0.0.1" in server.said() and "Traceback" not in server.said()


def test_a_balancer_in_front_of_a_proxy(run):
    """The PROXY header has the proxy's address, and the fields of the proxy the client's."""
    words = ("--proxy-protocol", "--proxy-allow-from", "*", "--forwarded-allow-ips", "192.0.2.9")
    server = run(NATIVE, *words, waits=False)
    wait_until_listening(server)
    request = b"GET / HTTP/1.0\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n"
    assert told(Answer(server.ask(VERSION_1 + request)))[0] == "198.51.100.7"
    other = VERSION_1.replace(b"192.0.2.9", b"192.0.2.8")
    assert told(Answer(server.ask(other + request)))[0] == "192.0.2.8"


def wait_until_listening(server):
    server.wait_for_words("listens on", 30)


def test_a_list_of_proxies_that_is_none_is_one_line(run):
    server = run(NATIVE, "--forwarded-allow-ips", "proxy.example", waits=False)
    assert server.process.wait(20) in (1, 2)
    assert "forwarded-allow-ips" in server.said() and "Traceback" not in server.said()


ASGI_EXTENSION = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    told = {key: value.decode() if isinstance(value, bytes) else value
            for key, value in scope["extensions"].get("proxy_protocol", {}).items()}
    text = json.dumps([told, scope["scheme"]]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"""


def test_what_a_header_says_besides_addresses_is_an_extension_of_asgi(run):
    server = run(ASGI_EXTENSION, "--proxy-protocol", "--proxy-allow-from", "127.0.0.1",
                 waits=False)
    wait_until_listening(server)
    of_tls = struct.pack("!BI", 3, 0) + tlv(0x21, b"TLSv1.3") + tlv(0x22, b"client")
    for tlvs, wanted in [
        (tlv(1, b"h2") + tlv(2, b"shop.example") + tlv(5, b"id-7") + tlv(0x20, of_tls),
         [{"alpn": "h2", "authority": "shop.example", "unique_id": "id-7",
           "tls": {"version": "TLSv1.3", "cipher": None, "client_name": "client",
                   "has_certificate": True, "is_verified": True}}, "https"]),
        (tlv(2, b"shop.example"),
         [{"alpn": None, "authority": "shop.example", "unique_id": None, "tls": None}, "http"]),
        (b"", [{}, "http"]),
    ]:
        answer = Answer(server.ask(version_2(extra=tlvs) + REQUEST))
        assert json.loads(answer.body) == wanted
