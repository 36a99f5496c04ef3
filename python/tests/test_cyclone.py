"""Cyclone's programs on our reactor: the same bytes as on Twisted's own."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("cyclone")

from cyclone_programs import BROKEN, PROGRAMS, outcome
from pairs import Pair
from requests_sent import FORM, get, post
from test_twisted import exchange

PROGRAM = """
import sys
if sys.argv[2] == "epoll":
    from twisted.internet.epollreactor import install
    install()
else:
    from gustnado.twisted import install
    install(cyclone=sys.argv[2] == "patched")
import cyclone.web
from twisted.internet import reactor, defer, task

class Hello(cyclone.web.RequestHandler):
    def get(self):
        self.write("Hello, world")

class Echo(cyclone.web.RequestHandler):
    def post(self):
        self.write({"arguments": {key: [value.decode() for value in values]
                                  for key, values in self.request.arguments.items()},
                    "body": self.request.body.decode("latin-1")})

class Later(cyclone.web.RequestHandler):
    @defer.inlineCallbacks
    def get(self):
        yield task.deferLater(reactor, 0.02, lambda: None)
        self.write("later")

class Fails(cyclone.web.RequestHandler):
    def get(self):
        raise cyclone.web.HTTPError(403, "no")

class Cookie(cyclone.web.RequestHandler):
    def get(self):
        self.set_cookie("a", "1")
        self.write(self.get_cookie("b") or "none")

class Own(cyclone.web.RequestHandler):
    def get(self):
        original = cyclone.web.__file__
        names = ("_convert_header_value", "_generate_headers", "clear")
        made = [getattr(cyclone.web.RequestHandler, name) for name in names]
        self.write({"own": [each.__code__.co_filename == original for each in made]})

application = cyclone.web.Application([
    (r"/", Hello), (r"/echo", Echo), (r"/later", Later), (r"/fails", Fails), (r"/cookie", Cookie),
    (r"/own", Own),
    (r"/file/(.*)", cyclone.web.StaticFileHandler, {"path": "."}),
])
reactor.listenTCP(int(sys.argv[1]), application, interface="127.0.0.1")
reactor.run()
"""

HOST = b"Host: a\r\n"
CASES = {
    "kept": [b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"] * 2,
    "closed": [b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
    "old": [b"GET / HTTP/1.0\r\n\r\n"],
    "head": [b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n"],
    "absent": [b"GET /absent HTTP/1.1\r\n" + HOST + b"\r\n"],
    "etag": [b'GET / HTTP/1.1\r\n'
             b'If-None-Match: "e02aa1b106d5c7c6a98def2b13005d5b84fd8dc8"\r\n\r\n'],
    "form": [b"POST /echo?x=1 HTTP/1.1\r\nContent-Length: 7\r\n"
             b"Content-Type: application/x-www-form-urlencoded\r\n\r\na=1&b=2"],
    "body in parts": [b"POST /echo HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc", b"def"],
    "head in parts": [b"GET / HT", b"TP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "pipelined": [b"GET / HTTP/1.1\r\n\r\n" * 3],
    "later": [b"GET /later HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "fails": [b"GET /fails HTTP/1.1\r\n\r\n"],
    "cookie": [b"GET /cookie HTTP/1.1\r\nCookie: b=2\r\n\r\n"],
    "file": [b"GET /file/program.py HTTP/1.1\r\n\r\n"],
    "repeated": [b"GET / HTTP/1.1\r\nX-Odd: 1\r\nx-odd:  2 \r\n\r\n"],
    "folded": [b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"],
    "bad line": [b"GET /\r\n\r\n"],
    "bad field": [b"GET / HTTP/1.1\r\nno colon\r\n\r\n"],
    "expect": [b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", b"abc"],
}


@pytest.fixture(scope="module")
def all_three(tmp_path_factory):
    from conftest import Server, free_port

    folder = tmp_path_factory.mktemp("cyclone")
    (folder / "program.py").write_text(PROGRAM)
    servers = []
    for reactor in ("epoll", "gustnado", "patched"):
        port = free_port()
        servers.append(Server(folder, [sys.executable, "program.py", str(port), reactor], port))
    yield servers
    for server in servers:
        server.kill()


@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_the_same(all_three, name):
    for quiet in (0.15, 0.6, 2):
        epoll, ours, patched = (exchange(server, CASES[name], quiet) for server in all_three)
        if epoll == ours == patched:
            break
    assert epoll == ours == patched


def test_its_classes_are_changed_only_where_a_program_asks_for_it(all_three):
    found = [exchange(server, [get(b"/own")])[0].split(b"\r\n\r\n")[1] for server in all_three]
    own, replaced = (b'{"own": [%s, %s, %s]}' % ((word,) * 3) for word in (b"true", b"false"))
    assert found == [own, own, replaced]


def test_twistd_asks_for_it_by_the_name_of_the_reactor(tmp_path):
    program = ("import gustnado.twisted._cyclone_reactor as module; "
               "print(module.install()._patches_cyclone)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
    command = [os.path.join(os.path.dirname(sys.executable), "twistd"), "--help-reactors"]
    said = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert "gustnado-cyclone" in said.stdout, said.stdout + said.stderr


# Request by request, for programs that need other ones than their first.
MORE = {
    "static": [get(b"/static/text.txt", b"If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT\r\n"),
               get(b"/static/absent"), get(b"/static/../cyclone_kinds.py"), get(b"/own/"),
               get(b"/static/style.css", method=b"HEAD"), get(b"/static/text.txt?v=1"),
               get(b"/static/text.txt", b"Range: bytes=1-4\r\n")],
    "authentication": [get(b"/"), get(b"/", b"Authorization: Basic eDp5\r\n")],
    "login": [get(b"/"), get(b"/", b"Cookie: member=forged\r\n")],
    "xsrf": [post(b"/", b"a=1", FORM),
             post(b"/", b"_xsrf=x", FORM + b"Cookie: _xsrf=x\r\n")],
    "json_rpc": [post(b"/", b'{"id": 1, "method": "fails"}'), post(b"/", b"no JSON"),
                 post(b"/", b'{"id": 2, "method": "absent"}'),
                 post(b"/", b'{"id": 3, "method": "later", "params": ["x"]}') + get(b"/")],
    "redirect": [get(b"/there") + get(b"/")],
    "hosts": [b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "hooks": [get(b"/whatever") * 2],
    "sse_bytes": [get(b"/hello") + get(b"/"), get(b"/") + b"not a request"],
}


@pytest.fixture
def pair(tmp_path):
    pairs = []

    def start(name):
        pairs.append(Pair(tmp_path, "cyclone_kinds.py", name))
        return pairs[-1]

    yield start
    for one in pairs:
        one.kill()


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in BROKEN])
def test_every_program_works_and_is_the_same(pair, name):
    program, both = PROGRAMS[name], pair(name)
    assert all(program.words in came for came, _ in both.ask([program.request], quiet=0.3))
    for request in [program.request, *MORE.get(name, [])]:
        assert not both.differ([request])


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_so_on_both(tmp_path, name):
    (epoll, error), (ours, ours_error) = outcome(name, tmp_path)
    assert (epoll, ours) == (False, False) and error == ours_error != ""


def test_what_comes_behind_a_stream_of_events_is_no_request(pair):
    assert not pair("sse_bytes").differ([get(b"/") + get(b"/hello")])
