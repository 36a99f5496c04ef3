"""The programs of `python/examples`, with a request to each."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Server, free_port
from websocket_link import WebSocketLink

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(tmp_path):
    """Starts an example, or a command in the folder of the examples."""
    servers = []

    def start(name, *words, port=None):
        port = port or free_port()
        command = [word.replace("{port}", str(port)) for word in words]
        command = command or [sys.executable, "-B", str(EXAMPLES / name), str(port)]
        env = {"PORT": str(port), "PYTHONPATH": f"{EXAMPLES}:{tmp_path}"}
        servers.append(Server(tmp_path, command, port, env=env))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def free_pair():
    """A free port with a free one behind it."""
    while True:
        port = free_port()
        with socket.socket() as behind:
            try:
                behind.bind(("0.0.0.0", port + 1))
                return port
            except (OSError, OverflowError):
                pass


def command(name):
    return os.path.join(os.path.dirname(sys.executable), name)


def body(server, path, fields=""):
    answer = server.get(path, fields)
    assert answer.status == 200 and answer.is_whole, answer.raw
    return answer.body


def test_chat(example):
    server = example("chat.py")
    assert b"new WebSocket" in body(server, "/")

    def told(link):
        return tuple(json.loads(link.receive()).values())

    with WebSocketLink(server.port, "/rooms/hall?name=Ann") as ann:
        assert told(ann) == ("Ann", None, 1)
        with WebSocketLink(server.port, "/rooms/hall?name=Bob") as bob:
            assert told(ann) == told(bob) == ("Bob", None, 2)
            with WebSocketLink(server.port, "/rooms/other") as other:
                assert told(other) == ("Nobody", None, 1)
                ann.send("hello, Bob")
                assert told(ann) == told(bob) == ("Ann", "hello, Bob", 2)
            bob.close(1001)
        assert told(ann) == ("Bob", None, 1)
        server.process.terminate()
        # The page comes again upon that.
        assert ann.receive().code == 1001
    assert server.process.wait(10) == 0


def test_native_site(example):
    server = example("native_site.py")
    assert body(server, "/hello/you") == b"Hello, you!\n"
    assert body(server, "/files/hello.txt") == b"Hello from a file\n"
    assert body(server, "/ticks") == b"".join(b"id: %d\ndata: tick\n\n" % n for n in range(3))
    assert server.post("/sum", b"1 2 3").body == b'{"sum":6}'
    assert server.end() == 0


@pytest.mark.parametrize("name", ["asgi_starlette", "wsgi_flask"])
def test_applications(example, name):
    pytest.importorskip(name.split("_")[1])
    words = [sys.executable, "-B", "-m", "gustnado", "run", "--port", "{port}", f"{name}:app"]
    server = example(name, *words)
    assert body(server, "/") == b"Hello, world!\n"
    answer = server.post("/sum", b"[1, 2, 3]", "Content-Type: application/json\r\n")
    assert answer.body.replace(b" ", b"").strip() == b'{"sum":6}'


def test_twisted_hello(example):
    pytest.importorskip("twisted")
    server = example("twisted_hello.py")
    assert body(server, "/") == b"Hello, world!\n"
    assert server.end() == 0


@pytest.fixture(scope="module")
def plugins():
    """Twisted's cache of plug-ins, made by the documentation's own means. The first that looks for
    them makes it, and imports them all; Cyclone's import a reactor, whichever was requested."""
    pytest.importorskip("twisted")
    look = "from twisted.plugin import IPlugin, getPlugins; list(getPlugins(IPlugin))"
    subprocess.run([sys.executable, "-c", look], check=True, capture_output=True)


def test_twistd(plugins, example):
    pytest.importorskip("twisted")
    server = example("twistd_site.tac", command("twistd"), "--reactor=gustnado", "--nodaemon",
                     "--pidfile=", "--logfile=twistd.log", "--python",
                     str(EXAMPLES / "twistd_site.tac"))
    assert body(server, "/") == b"Hello from twistd\n"
    # (It ends itself by the signal that ended it.)
    assert server.end() == -15
    log = (server.folder / "twistd.log").read_text()
    assert "reactor class: gustnado.twisted._reactor.GustnadoReactor" in log
    assert '"GET / HTTP/1.1" 200 18 "-" "-"' in log


def test_twistd_web(plugins, example, tmp_path):
    """Its own sites, without a line of code."""
    pytest.importorskip("twisted")
    server = example("web", command("twistd"), "--reactor=gustnado", "--nodaemon", "--pidfile=",
                     "web", "--listen=tcp:{port}", f"--path={EXAMPLES / 'public'}")
    assert body(server, "/hello.txt") == b"Hello from a file\n"


@pytest.mark.parametrize("reactor", ["gustnado.twisted", "twisted.internet.epollreactor"])
def test_deferred_and_future(example, tmp_path, reactor):
    pytest.importorskip("twisted")
    program = (EXAMPLES / "deferred_future.py").read_text()
    (tmp_path / "program.py").write_text(program.replace("gustnado.twisted", reactor))
    server = example("", sys.executable, "program.py", "{port}")
    for word in ("one", "two"):
        heard = f"the loop heard of: {word}, the reactor\n".encode()
        assert body(server, f"/?word={word}") == heard
    assert body(server, "/?word=fail") == b"failed: there is no such thing\n"
    assert server.end() == 0


def test_fake_http(example):
    pytest.importorskip("twisted")
    server = example("fake_http.py", port=free_pair())
    assert server.get("/").body == b"Hello, world\r\n"
    # In pieces, and without any sense.
    with server.connect() as link:
        for piece in (b"n", b"onsense\r", b"\n\r\n"):
            link.sendall(piece)
        assert link.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n") and link.recv(1000) == b""
    server.port += 1
    assert server.get("/").body == b"Hello, world\r\n"


def test_hello_world(example):
    pytest.importorskip("cyclone")
    server = example("hello_world.py")
    assert body(server, "/") == b"Hello, world"


def test_cyclone_static(example):
    pytest.importorskip("cyclone")
    server = example("cyclone_static.py")
    link = body(server, "/").split(b'"')[1].decode()
    assert link.startswith("/static/hello.txt?v=")
    assert body(server, link) == b"Hello from a file\n"


def test_cyclone_events(example):
    pytest.importorskip("cyclone")
    server = example("cyclone_events.py")
    with server.connect() as link:
        link.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        came = b""
        while b"data: tick 2\n\n" not in came:
            more = link.recv(65536)
            assert more, came
            came += more
    assert b"Content-Type: text/event-stream\r\n" in came and b"id: 1\ndata: tick 1\n\n" in came


def test_cyclone_by_twistd(plugins, example, tmp_path):
    """`cyclone run` is twistd with a plugin of its own, which finds an application by its name."""
    pytest.importorskip("cyclone")
    if sys.version_info >= (3, 12):
        pytest.skip("Cyclone's plugin imports imp, which is gone")
    (tmp_path / "shop.py").write_text(
        "import cyclone.web\n"
        "class Hello(cyclone.web.RequestHandler):\n"
        "    def get(self):\n"
        "        self.write('Hello, shop')\n"
        "class Shop(cyclone.web.Application):\n"
        "    def __init__(self):\n"
        "        super().__init__([(r'/', Hello)])\n"
    )
    server = example("", command("twistd"), "--reactor=gustnado", "--nodaemon", "--pidfile=",
                     "cyclone", "--port={port}", "--listen=127.0.0.1", "--app=shop.Shop")
    assert body(server, "/") == b"Hello, shop"
