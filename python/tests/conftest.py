"""Servers in processes of their own, and requests to them over real sockets."""

import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

pytest.register_assert_rewrite("pairs")


class Server:
    """A command that serves on a port, until the test ends."""

    def __init__(self, folder, command, port, waits=True, env=()):
        self.port, self.folder = port, folder
        self.log = open(folder / f"log{port}", "w+")
        self.process = subprocess.Popen(
            command, stderr=self.log, stdin=subprocess.DEVNULL, cwd=folder,
            # (Empty is as not set: servers keep bytecode, as they do elsewhere.)
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "", **dict(env)},
        )
        deadline = time.monotonic() + 30
        while waits:
            try:
                self.connect().close()
                return
            except OSError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() < deadline, self.said()
                time.sleep(0.02)

    def connect(self, timeout=10):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask_at_once(self, path, count):
        """Returns the first bytes of so many responses, and the seconds they took together."""
        began = time.monotonic()
        links = [self.connect() for _ in range(count)]
        for link in links:
            link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        answers = [link.recv(4096) for link in links]
        took = time.monotonic() - began
        for link in links:
            link.close()
        return answers, took

    def ask(self, request):
        """Sends bytes, and returns all that comes until the server closes."""
        with self.connect() as link:
            link.sendall(request)
            return read_all(link)

    def get(self, path, fields="", method="GET"):
        text = f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n"
        return Answer(self.ask(text.encode("latin-1")))

    def post(self, path, body, fields=""):
        text = (f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
                f"{fields}Connection: close\r\n\r\n")
        return Answer(self.ask(text.encode() + body))

    def said(self):
        self.log.flush()
        with open(self.log.name) as log:
            return log.read()

    def wait_for_words(self, words, seconds=10):
        deadline = time.monotonic() + seconds
        while words not in self.said():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02)

    def end(self, number=signal.SIGTERM, seconds=15):
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Answer:
    def __init__(self, raw):
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.raw, self.status = raw, int(lines[0].split()[1])
        self.reason = lines[0].split(" ", 2)[2]
        self.fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            self.fields[name.lower()] = value
        self.is_whole = True
        self.body = body
        if "transfer-encoding" in self.fields:
            self.body, self.is_whole = unchunked(body)
        elif "content-length" in self.fields:
            self.is_whole = len(body) == int(self.fields["content-length"])


def chunked(body, size=100_000):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def post_chunked(server, path, body):
    head = (f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
            "Connection: close\r\n\r\n")
    return server.ask(head.encode() + chunked(body))


def unchunked(body):
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return whole, True
        whole, body = whole + rest[:length], rest[length + 2:]
    return whole, False


def read_all(link):
    pieces = []
    while piece := link.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def ports_of_this_process():
    """All ports that no other process of these tests takes, over and over. They lie below those
    that the kernel gives out: one of those may be given to somebody else before it is listened on,
    and whoever waits for the server then meets another one, or itself."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    first, count = 10_000 + int(name[2:]) % 10 * 2_000, 2_000
    begin = random.randrange(count)
    return itertools.cycle(first + (begin + at) % count for at in range(count))


PORTS = ports_of_this_process()


def free_port():
    for port in itertools.islice(PORTS, 2_000):
        with socket.socket() as taken, contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("2,000 ports in a row are taken: end what listens on them")


@contextlib.contextmanager
def serving(folder, program, *options):
    """`gustnado run` of a program for several tests: what they log is in one place."""
    (folder / "site_app.py").write_text(textwrap.dedent(program))
    port = free_port()
    command = [sys.executable, "-m", "gustnado", "run", "--port", str(port), *options]
    server = Server(folder, [*command, "site_app:app"], port)
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def start(tmp_path):
    """Starts a command; `{port}` in it is a free one. It is ended with the test."""
    servers = []

    def start(command, waits=True):
        port = free_port()
        command = [str(word).replace("{port}", str(port)) for word in command]
        servers.append(Server(tmp_path, command, port, waits))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def serve(tmp_path, start):
    """Starts a program that serves on the port that it is given."""

    def serve(program):
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
        return start([sys.executable, "program.py", "{port}"])

    return serve


@pytest.fixture
def run(tmp_path, start):
    """`gustnado run` of an application in a module of this text."""

    def run(program, *options, name="site_app", waits=True):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(program))
        command = [sys.executable, "-m", "gustnado", "run", "--port", "{port}"]
        return start([*command, *options, f"{name}:app"], waits)

    return run


def self_signed(folder):
    """Makes `cert.pem` for localhost, and `key.pem`. Returns the path of the first."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"
