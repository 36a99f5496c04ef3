"""Which releases of Twisted the engine knows, and what it does with one that it does not know."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("twisted")

from gustnado.twisted._digests import CYCLONE_RELEASES, RELEASES
from pairs import REACTORS
from test_twisted import exchange

SCRIPT = Path(__file__).parent / "twisted_digests.py"

PROGRAM = """
import sys, traceback
if sys.argv[2] == "gustnado":
    from gustnado.twisted import install
else:
    from twisted.internet.epollreactor import install
install()
from twisted.internet import reactor
from twisted.python import log
from twisted.web import http, http_headers, resource, server, static

log.startLogging(sys.stderr)

class Way(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        names = [frame.name for frame in traceback.extract_stack()]
        return b"generic" if "requestReceived" in names else b"ordinary"

class Hello(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return b"Hello, world!"

%s

root = resource.Resource()
root.putChild(b"", Hello())
root.putChild(b"way", Way())
root.putChild(b"file", static.File(__file__))
reactor.listenTCP(0, server.Site(root), interface="127.0.0.1")
reactor.listenTCP(int(sys.argv[1]), server.Site(root), interface="127.0.0.1")
reactor.run()
"""

# Releases that are to come, as far as the engine can tell.
OTHER_REQUESTS = """
def finish(self):
    finished(self)

finished, http.Request.finish = http.Request.finish, finish
"""
OTHER_FILES = """
def setLastModified(self, when):
    return modified(self, when)

modified, http.Request.setLastModified = http.Request.setLastModified, setLastModified
"""


def test_the_installed_release_is_known():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and ", which is known" in done.stdout, done


def test_the_table_has_only_what_differs_from_its_first_release():
    for releases in (RELEASES, CYCLONE_RELEASES):
        newest, *older = releases.values()
        for changed in older:
            assert changed.keys() <= newest.keys()
            assert all(newest[name] != digest for name, digest in changed.items())


@pytest.fixture
def serve(tmp_path, start):
    def serve(more, reactor="gustnado"):
        (tmp_path / "program.py").write_text(PROGRAM % more)
        return start([sys.executable, "program.py", "{port}", reactor])

    return serve


def lines_of(server):
    return [line for line in server.said().splitlines() if "[gustnado]" in line]


def test_a_known_release_takes_the_ordinary_path_and_says_nothing(serve):
    server = serve("")
    assert server.get("/way").body == b"ordinary"
    assert server.get("/file").status == 200
    assert not lines_of(server)


def test_an_unknown_release_says_once_what_differs_and_takes_the_generic_path(serve):
    server = serve(OTHER_REQUESTS)
    assert server.get("/way").body == server.get("/way").body == b"generic"
    assert server.get("/file").status == 200
    line, = lines_of(server)
    assert "http.Request.finish differs from" in line
    assert "ordinary requests" in line and "Twisted's own functions" in line


def test_other_functions_for_files_leave_only_files_to_twisted(serve):
    server = serve(OTHER_FILES)
    assert server.get("/way").body == b"ordinary"
    assert server.get("/file").status == server.get("/file").status == 200
    line, = lines_of(server)
    assert "http.Request.setLastModified differs from" in line and "leaves files" in line


@pytest.mark.parametrize("more", [OTHER_REQUESTS, OTHER_FILES])
def test_an_unknown_release_responds_as_it_does_on_epoll(serve, more):
    servers = [serve(more, reactor) for reactor in REACTORS]
    for path in (b"/", b"/absent", b"/file"):
        request = b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        epoll, ours = (exchange(server, [request] * 2) for server in servers)
        assert epoll == ours and epoll[0].startswith(b"HTTP/1.1 ")
