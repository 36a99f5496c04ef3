"""Twisted with TLS by the engine: `listenTCP(port, site, native_tls=True)`."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time

import pytest
from conftest import Answer, read_all
from test_examples import command
from test_tls import files, openssl

pytest.importorskip("twisted")

__all__ = ["files"]

PROGRAM = """
import json, sys
from gustnado.twisted import install
install()
from twisted.internet import reactor, protocol
from twisted.python import log
from twisted.web import resource, server, static
log.startLogging(sys.stderr)

class Seen(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        transport = request.transport
        peer = transport.getPeerCertificate()
        found = {
            "secure": request.isSecure(),
            "client": request.getClientAddress().host,
            "url": request.prePathURL().decode(),
            "subject": peer and peer.get_subject().CN,
            "chain": len(transport.getPeerCertificateChain()),
            "alpn": (transport.negotiatedProtocol or b"").decode(),
            "tls": transport.getTLS(),
            "kind": type(transport).__name__,
        }
        return json.dumps(found).encode()

class Echo(resource.Resource):
    isLeaf = True
    def render_POST(self, request):
        return request.content.read()

class Later(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        request.write(b"first ")
        reactor.callLater(0.02, self.go_on, request)
        return server.NOT_DONE_YET
    def go_on(self, request):
        request.write(b"second")
        request.finish()

class Large(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return bytes(range(256)) * 16384

class Produced(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        self_ = Producer(request)
        request.registerProducer(self_, True)
        self_.resumeProducing()
        return server.NOT_DONE_YET

class Producer:
    def __init__(self, request):
        self.request, self.left, self.pauses, self.is_paused = request, 300, 0, False
    def resumeProducing(self):
        self.is_paused = False
        while self.left and not self.is_paused:
            self.left -= 1
            self.request.write(b"x" * 10_000)
        if not self.left and not self.is_paused:
            self.request.unregisterProducer()
            self.request.finish()
    def pauseProducing(self):
        self.is_paused = True
    def stopProducing(self):
        self.left = 0

class Own(server.Request):
    pass

class Lines(protocol.Protocol):
    def connectionMade(self):
        self.transport.write(b"hello\\n")
    def dataReceived(self, data):
        self.transport.writeSequence([b"got ", data])
        if b"bye" in data:
            self.transport.loseConnection()

root = resource.Resource()
root.putChild(b"seen", Seen())
root.putChild(b"echo", Echo())
root.putChild(b"later", Later())
root.putChild(b"large", Large())
root.putChild(b"produced", Produced())
root.putChild(b"files", static.File(sys.argv[2]))
site = server.Site(root)
settings = json.loads(sys.argv[3])
kind = settings.pop("kind", "site")
if kind == "own":
    site.requestFactory = Own
if kind == "lines":
    site = protocol.Factory.forProtocol(Lines)
reactor.listenTCP(int(sys.argv[1]), site, interface="127.0.0.1", native_tls=True, **settings)
reactor.run()
"""


class Program:
    def __init__(self, run, files, folder, **settings):
        pair = {"tls_cert": str(files / "server.pem"), "tls_key": str(files / "server.key")}
        program = folder / "program.py"
        program.write_text(PROGRAM)
        (folder / "small.txt").write_bytes(b"small")
        (folder / "big.bin").write_bytes(os.urandom(400_000))
        self.port, self.files, self.folder = run.free_port(), files, folder
        text = json.dumps({**pair, **settings})
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen(
            [sys.executable, program, str(self.port), folder, text], stderr=self.log)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
                break
            except OSError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() < deadline, self.said()
                time.sleep(0.02)

    def said(self):
        with open(self.log.name) as log:
            return log.read()

    def link(self, client=False, alpn=None, name="localhost", ca=None, version=None):
        context = ssl.create_default_context(cafile=ca or self.files / "server.pem")
        if client:
            context.load_cert_chain(self.files / "client.pem", self.files / "client.key")
        if alpn:
            context.set_alpn_protocols(alpn)
        if version:
            context.maximum_version = version
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        return context.wrap_socket(plain, server_hostname=name)

    def ask(self, request, **options):
        with self.link(**options) as link:
            link.sendall(request)
            return Answer(read_all(link))

    def get(self, path, fields="", **options):
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n"
        return self.ask(head.encode(), **options)

    def seen(self, **options):
        return json.loads(self.get("/seen", **options).body)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Run:
    def __init__(self, files, folder):
        self.files, self.folder, self.programs = files, folder, []

    def free_port(self):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            return found.getsockname()[1]

    def __call__(self, **settings):
        program = Program(self, self.files, self.folder, **settings)
        self.programs.append(program)
        return program


@pytest.fixture
def serve(files, tmp_path):
    run = Run(files, tmp_path)
    yield run
    for program in run.programs:
        program.end()


@pytest.mark.parametrize("kind", ["site", "own"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("records", ["own", "rustls"])
def test_a_site_is_served_by_tls(serve, kind, version, records):
    program = serve(kind=kind, tls_records=records)
    seen = program.seen(version=version)
    assert seen["secure"] and seen["client"] == "127.0.0.1"
    assert seen["url"].startswith(f"https://localhost:{program.port}/")
    assert (seen["subject"], seen["chain"], seen["kind"]) == (None, 0, "TlsServer")
    assert seen["tls"][0] == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
    assert seen["tls"][2] == "localhost"
    assert program.get("/later").body == b"first second"
    assert program.get("/large").body == bytes(range(256)) * 16384
    assert program.get("/produced").body == b"x" * 3_000_000
    assert program.get("/files/small.txt").body == b"small"
    assert program.get("/files/big.bin").body == (program.folder / "big.bin").read_bytes()
    body = os.urandom(300_000)
    head = (f"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    assert program.ask(head.encode() + body).body == body
    assert program.process.poll() is None and "Traceback" not in program.said()


def test_many_requests_share_a_connection(serve):
    program = serve()
    one = b"GET /files/small.txt HTTP/1.1\r\nHost: a\r\n\r\n"
    with program.link() as link:
        for _ in range(3):
            link.sendall(one)
            assert link.recv(4096).endswith(b"small")
        link.sendall(one * 20)
        found = b""
        while found.count(b"small") < 20:
            found += link.recv(65536)
        # A byte at a time, each in a record of its own.
        for byte in one:
            link.sendall(bytes([byte]))
        assert link.recv(4096).endswith(b"small")


def test_records_may_come_in_pieces(serve):
    program = serve()
    context = ssl.create_default_context(cafile=program.files / "server.pem")
    inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context.wrap_bio(inbound, outbound, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", program.port), timeout=10) as plain:
        def crawl(act):
            while True:
                try:
                    return act()
                except ssl.SSLWantReadError:
                    send()
                    inbound.write(plain.recv(65536))

        def send():
            for byte in outbound.read():
                plain.sendall(bytes([byte]))

        crawl(end.do_handshake)
        end.write(b"GET /files/small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        assert crawl(lambda: end.read(4096)).endswith(b"small")


@pytest.mark.parametrize("wanted", ["optional", "required"])
def test_a_client_may_have_a_certificate(serve, files, wanted):
    program = serve(tls_client_auth=wanted, tls_client_ca=str(files / "ca.pem"))
    seen = program.seen(client=True)
    assert (seen["subject"], seen["chain"]) == ("client", 1)
    if wanted == "optional":
        assert program.seen()["subject"] is None
    else:
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            program.seen()


@pytest.mark.parametrize("alpn, agreed", [
    (["h2", "http/1.1"], "http/1.1"), (["http/1.0"], "http/1.1"), (None, ""),
])
def test_http_1_is_agreed_on(serve, alpn, agreed):
    assert serve().seen(alpn=alpn)["alpn"] == agreed


def test_versions_and_names_are_refused_as_set(serve, files):
    program = serve(tls_version_min="1.3", tls_strict_names=True)
    assert program.seen()["secure"]
    with pytest.raises(ssl.SSLError):
        program.seen(version=ssl.TLSVersion.TLSv1_2)
    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        program.seen(name="other.test")


def test_hosts_have_certificates_of_their_own(serve, files, tmp_path):
    openssl(tmp_path, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", "shop.key", "-out", "shop.pem", "-subj", "/CN=shop.test",
            "-addext", "subjectAltName=DNS:shop.test")
    shop = tmp_path / "shop.pem"
    program = serve(tls_sites={"shop.test": [str(shop), str(tmp_path / "shop.key")]})
    assert program.seen(name="shop.test", ca=shop)["tls"][2] == "shop.test"
    assert program.seen()["tls"][2] == "localhost"


@pytest.mark.parametrize("kind", ["site", "own"])
def test_hsts_is_in_every_response_of_a_resource(serve, kind):
    program = serve(kind=kind, hsts="365d")
    for path in ("/seen", "/later", "/files/small.txt", "/files/big.bin", "/none"):
        found = program.get(path).fields["strict-transport-security"]
        assert found == "max-age=31536000", path


def test_no_hsts_is_sent_by_default(serve):
    assert "strict-transport-security" not in serve().get("/seen").fields


def test_the_connection_ends_in_order(serve):
    program = serve()
    with program.link() as link:
        link.sendall(b"GET /seen HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        read_all(link)  # An end without `close_notify` raises.
    with program.link() as link:
        link.sendall(b"GET /files/small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        assert link.recv(4096).endswith(b"small")
        # The server answers `close_notify` by its own.
        link.unwrap()


def test_plain_http_is_told_what_the_port_speaks(serve):
    program = serve()
    with socket.create_connection(("127.0.0.1", program.port), timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = Answer(read_all(plain))
    assert answer.status == 400 and b"https" in answer.body
    assert program.seen()["secure"]


def test_garbage_ends_its_connection_alone(serve):
    program = serve()
    with socket.create_connection(("127.0.0.1", program.port), timeout=10) as plain:
        plain.sendall(b"\x00" * 100)
        # A fatal alert.
        assert plain.recv(4096)[:1] == b"\x15"
    with program.link() as link:
        plain = socket.socket(fileno=os.dup(link.fileno()))
        plain.sendall(b"\x17\x03\x03\x00\x20" + b"\x00" * 32)
        with pytest.raises(ssl.SSLError, match=r"(?i)bad record mac"):
            link.recv(4096)
        plain.close()
    assert program.seen()["secure"] and "Traceback" not in program.said()


def test_a_slow_handshake_is_ended(serve):
    program = serve(tls_handshake_timeout="200ms")
    with socket.create_connection(("127.0.0.1", program.port), timeout=10) as plain:
        began = time.monotonic()
        try:
            assert plain.recv(1) == b""
        except ConnectionResetError:
            pass  # Twisted's `abortConnection` resets.
        assert time.monotonic() - began < 5
    with program.link() as link:
        time.sleep(0.4)
        link.sendall(b"GET /files/small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        assert link.recv(4096).endswith(b"small")


def test_changed_files_are_read_again(serve, files, tmp_path):
    cert, key = tmp_path / "now.pem", tmp_path / "now.key"
    shutil.copy(files / "server.pem", cert)
    shutil.copy(files / "server.key", key)
    program = serve(tls_cert=str(cert), tls_key=str(key))
    program.seen()
    openssl(tmp_path, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", "new.key", "-out", "new.pem", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost")
    os.replace(tmp_path / "new.key", key)
    os.replace(tmp_path / "new.pem", cert)
    time.sleep(1.1)
    assert program.seen(ca=cert)["secure"]
    cert.write_text("no certificate")
    time.sleep(1.1)
    with pytest.raises(ssl.SSLCertVerificationError):
        program.seen()
    assert "the last valid certificates stay in force" in program.said()


def test_protocols_that_speak_first_are_served_too(serve):
    program = serve(kind="lines")
    with program.link() as link:
        assert link.recv(100) == b"hello\n"
        link.sendall(b"one")
        assert link.recv(100) == b"got one"
        link.sendall(b"bye")
        assert link.recv(100) == b"got bye"
        assert link.recv(100) == b""


def test_an_endpoint_has_the_settings_in_its_text(files, tmp_path):
    (tmp_path / "index.html").write_text("hello")
    port = Run(files, tmp_path).free_port()
    listen = (f"gustnado-tls:{port}:interface=127.0.0.1:tls_cert={files / 'server.pem'}:"
              f"tls_key={files / 'server.key'}:hsts=1d")
    words = [command("twistd"), "--reactor=gustnado",
               "--nodaemon", "--pidfile=", "web",
               f"--listen={listen}", f"--path={tmp_path}"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        context = ssl.create_default_context(cafile=files / "server.pem")
        deadline = time.monotonic() + 30
        while True:
            try:
                plain = socket.create_connection(("127.0.0.1", port), timeout=10)
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
        with context.wrap_socket(plain, server_hostname="localhost") as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = Answer(read_all(link))
        assert answer.body == b"hello"
        assert answer.fields["strict-transport-security"] == "max-age=86400"
    finally:
        process.kill()
        process.wait()


def test_an_endpoint_needs_our_reactor(tmp_path):
    words = [command("twistd"), "--reactor=epoll", "--nodaemon",
               "--pidfile=", "web", "--listen=gustnado-tls:0:tls_cert=a.pem"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ended.returncode != 0
    assert "gustnado-tls needs --reactor=gustnado" in ended.stdout + ended.stderr


@pytest.mark.parametrize("settings, words", [
    ({"native_tls": True}, "TLS needs a certificate"),
    ({"native_tls": True, "tls_cert": "none.pem"}, "none.pem"),
    ({"native_tls": True, "tls_certs": "a"}, "tls_certs: no setting of native_tls; they are"),
    ({"tls_cert": "a"}, "tls_cert: set native_tls=True, too"),
    ({"native_tls": True, "tls_cert": "a", "tls_version_min": "1.1"}, "tls-version-min"),
])
def test_settings_that_cannot_be_used_are_named(settings, words, tmp_path):
    program = (
        "import sys, json\n"
        "from gustnado.twisted import install\n"
        "reactor = install()\n"
        "from twisted.web import server, resource\n"
        "reactor.listenTCP(0, server.Site(resource.Resource()), **json.loads(sys.argv[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, json.dumps(settings)],
                           capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ended.returncode == 1 and words in ended.stderr
