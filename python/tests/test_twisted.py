"""Twisted on our reactor: the same bytes as on its own."""

import os
import re
import subprocess
import sys
import time

import pytest

pytest.importorskip("twisted")

PROGRAM = """
import sys
if sys.argv[2] == "gustnado":
    from gustnado.twisted import install
else:
    from twisted.internet.epollreactor import install
install()
from twisted.internet import reactor, defer, task
from twisted.python import log
from twisted.web import resource, server, static

class Hello(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return b"Hello, world!"

class Echo(resource.Resource):
    isLeaf = True
    def render_POST(self, request):
        args = repr(sorted(request.args.items())).encode()
        return request.content.read() + b"|" + args

class Seen(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        lines = [request.method, request.uri, request.path, request.clientproto,
                 repr(sorted(request.args.items())).encode(),
                 repr(sorted(request.received_cookies.items())).encode(),
                 repr(list(request.requestHeaders.getAllRawHeaders())).encode(),
                 str(request.getClientAddress().host).encode(), str(request.isSecure()).encode()]
        return b"\\n".join(lines)

class Later(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        request.write(b"first ")
        reactor.callLater(0.02, self.go_on, request)
        return server.NOT_DONE_YET
    def go_on(self, request):
        request.write(b"second")
        request.finish()

class Waits(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        request.notifyFinish().addErrback(lambda failure: print("lost", failure.type.__name__,
                                                                flush=True, file=sys.stderr))
        return server.NOT_DONE_YET

class Fails(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        raise ValueError("what a pity")

class Cookie(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        request.addCookie(b"a", b"1")
        request.setHeader(b"etag", b'"x"')
        request.setLastModified(1234567890)
        return b"" if request.setETag(b"x") else b"cookie"

class Large(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return bytes(range(256)) * 4096

root = resource.Resource()
root.putChild(b"", Hello())
root.putChild(b"echo", Echo())
root.putChild(b"seen", Seen())
root.putChild(b"later", Later())
root.putChild(b"waits", Waits())
root.putChild(b"fails", Fails())
root.putChild(b"cookie", Cookie())
root.putChild(b"large", Large())
root.putChild(b"file", static.File(__file__))
site = server.Site(root, logPath=b"access.log" if len(sys.argv) > 3 else None)
reactor.listenTCP(int(sys.argv[1]), site, interface="127.0.0.1")
reactor.run()
"""

HOST = b"Host: a\r\n"
CASES = {
    "keep-alive": [b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"],
    "close": [b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"],
    "close among others": [b"GET / HTTP/1.1\r\nConnection: foo close\r\n\r\n"],
    "old": [b"GET / HTTP/1.0\r\n\r\n"],
    "old and kept": [b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"],
    "head": [b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n"],
    "options": [b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n"],
    "absent": [b"GET /absent HTTP/1.1\r\n" + HOST + b"\r\n"],
    "not allowed": [b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n"],
    "unknown method": [b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n"],
    "lower case": [b"get / HTTP/1.1\r\n" + HOST + b"\r\n"],
    "seen": [b"GET /seen/x?a=1&b=%20c&a=2 HTTP/1.1\r\n" + HOST + b"cookie: k=v; l=w\r\n"
             b"x-odd:  blanks \t\r\nX-Odd: again\r\nETAG: e\r\nwww-authenticate: x\r\n\r\n"],
    "obs-text": [b"GET /seen HTTP/1.1\r\nX: \xe9\xff\r\n\r\n"],
    "absolute": [b"GET http://a/seen HTTP/1.1\r\n" + HOST + b"\r\n"],
    "post": [b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc"],
    "form": [b"POST /echo?x=1 HTTP/1.1\r\n" + HOST + b"Content-Length: 7\r\n"
             b"Content-Type: application/x-www-form-urlencoded\r\n\r\na=1&b=2"],
    "multipart that is broken": [b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n"
                                 b"Content-Type: multipart/form-data\r\n\r\nabc"],
    "post in parts": [b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 6\r\n\r\nabc", b"def"],
    "head in parts": [b"GET / HT", b"TP/1.1\r\nHo", b"st: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "pipelined": [b"GET / HTTP/1.1\r\n\r\n" * 3],
    "pipelined behind one that waits": [b"GET /later HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"],
    "pipelined behind the last": [b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
                                  b"GET / HTTP/1.1\r\n\r\n"],
    "plain, odd, plain": [b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\nX: y\n\n",
                          b"GET / HTTP/1.1\r\n\r\n"],
    "chunked": [b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                b"GET / HTTP/1.1\r\n\r\n"],
    "expect": [b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", b"abc"],
    "both lengths": [b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
                     b"\r\n0\r\n\r\n"],
    "two lengths": [b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"],
    "bad length": [b"POST /echo HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc"],
    "bad line": [b"GET /\r\n\r\n"],
    "bad version": [b"GET / HTTP/2.0\r\n\r\n"],
    "bad target": [b"GET /\x01 HTTP/1.1\r\n\r\n"],
    "bad field": [b"GET / HTTP/1.1\r\nno colon\r\n\r\n"],
    "blank before colon": [b"GET / HTTP/1.1\r\nX : y\r\n\r\n"],
    "nul": [b"GET / HTTP/1.1\r\nX: \x00\r\n\r\n"],
    "folded": [b"GET /seen HTTP/1.1\r\nX: a\r\n b\r\n\r\n"],
    "first line empty": [b"\r\nGET / HTTP/1.1\r\n\r\n"],
    "two empty lines": [b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"],
    "long head": [b"GET / HTTP/1.1\r\nX: " + b"x" * 16_300 + b"\r\n\r\n"],
    "longer head": [b"GET / HTTP/1.1\r\nX: " + b"x" * 16_400 + b"\r\n\r\n"],
    "many fields": [b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 501 + b"\r\n"],
    "later": [b"GET /later HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "fails": [b"GET /fails HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
    "cookie": [b"GET /cookie HTTP/1.1\r\n\r\n"],
    "not modified": [b'GET /cookie HTTP/1.1\r\nIf-None-Match: "x"\r\n\r\n'],
    "large": [b"GET /large HTTP/1.1\r\n\r\n"],
    "file": [b"GET /file HTTP/1.1\r\n\r\n"],
    "range": [b"GET /file HTTP/1.1\r\nRange: bytes=1-6\r\n\r\n"],
    "upgrade": [b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"],
}


@pytest.fixture(params=["plain", "logged"])
def both(request, tmp_path, start):
    more = ["logged"] if request.param == "logged" else []
    servers = []
    for reactor in ("epoll", "gustnado"):
        folder = tmp_path / "program.py"
        folder.write_text(PROGRAM)
        servers.append(start([sys.executable, "program.py", "{port}", reactor, *more]))
    return servers


def exchange(server, pieces, quiet=0.15):
    """Sends pieces, with a pause between them, and returns what came and whether it was closed."""
    came, is_closed = b"", False
    with server.connect() as link:
        for piece in pieces:
            try:
                link.sendall(piece)
            except OSError:
                break
            link.settimeout(quiet)
            try:
                while more := link.recv(1 << 20):
                    came += more
                is_closed = True
                break
            except TimeoutError:
                pass
            except ConnectionResetError:
                is_closed = True
                break
    came = re.sub(rb"Date: [^\r]*", b"Date: now", came)
    return re.sub(rb"\b1270\d+\b", b"port", came), is_closed


@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_the_same(both, name):
    # A busy machine may need longer than the pause.
    for quiet in (0.15, 0.6, 2):
        epoll, ours = (exchange(server, CASES[name], quiet) for server in both)
        if ours == epoll:
            break
    assert ours == epoll


def test_a_client_that_goes_is_heard_of(both):
    for server in both:
        with server.connect() as link:
            link.sendall(b"GET /waits HTTP/1.1\r\n\r\n")
            time.sleep(0.2)
        server.wait_for_words("lost ConnectionDone")


def test_the_log_is_the_same(tmp_path, start):
    lines = []
    for reactor in ("epoll", "gustnado"):
        folder = tmp_path / reactor
        folder.mkdir()
        (tmp_path / "program.py").write_text(PROGRAM)
        server = start([sys.executable, "program.py", "{port}", reactor, "logged"])
        for fields in ("", "User-Agent: a\"b\\c\r\nReferer: \xe9\r\n"):
            server.get("/seen?x='y'", fields)
        time.sleep(0.2)
        server.end()
        log = tmp_path / "access.log"
        lines.append(re.sub(r"\[[^\]]*\]", "[when]", log.read_text()))
        log.unlink()
    assert lines[0] == lines[1] and lines[0].count("\n") == 2


def test_the_reactor_is_there_by_its_name():
    program = "from gustnado.twisted import install; r = install(); print(type(r).__name__)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "GustnadoReactor\n", said.stderr


def test_twistd_knows_it():
    command = [os.path.join(os.path.dirname(sys.executable), "twistd"), "--help-reactors"]
    said = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert "gustnado" in said.stdout, said.stdout + said.stderr
