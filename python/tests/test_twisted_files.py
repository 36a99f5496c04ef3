"""Files below a twisted.web.static.File that are swapped while they are served."""

import http.client
import os
import sys
import threading
import time

import pytest

pytest.importorskip("twisted")

# Twisted itself opens whatever is there, and would wait for a pipe's writer: not so here.
PROGRAM = """
import os, stat, sys
from gustnado.twisted import install
install()
from twisted.internet import reactor
from twisted.python import filepath
from twisted.web import resource, server, static

def opened(self, mode="r"):
    number = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(13, "it is no file")
    return os.fdopen(number, "rb")

filepath.FilePath.open = opened
root = resource.Resource()
root.putChild(b"files", static.File("."))
reactor.listenTCP(int(sys.argv[1]), server.Site(root), interface="127.0.0.1")
reactor.run()
"""

SECONDS = 1.5


def swap(folder, ended):
    """Has a file be a pipe, and a file again, as often as it can."""
    while not ended.is_set():
        for kind in ("pipe", "regular"):
            os.link(folder / kind, folder / "next")
            os.replace(folder / "next", folder / "swapped.txt")


def test_a_file_that_becomes_a_pipe_holds_nobody(tmp_path, start):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "regular").write_bytes(b"regular")
    os.link(tmp_path / "regular", tmp_path / "swapped.txt")
    os.mkfifo(tmp_path / "pipe")
    server = start([sys.executable, "program.py", "{port}"])
    ended = threading.Event()
    swapping = threading.Thread(target=swap, args=(tmp_path, ended))
    swapping.start()
    try:
        found, until = {}, time.monotonic() + SECONDS
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        while time.monotonic() < until:
            try:
                link.request("GET", "/files/swapped.txt")
                answer = link.getresponse()
                body = answer.read()
            except (http.client.HTTPException, ConnectionError):
                link.close()  # Of a file that has become shorter meanwhile, Twisted says so.
                continue
            found[answer.status] = found.get(answer.status, 0) + 1
            # Twisted itself says the length of what was there before.
            assert answer.status != 200 or body in (b"regular", b""), body
    finally:
        ended.set()
        swapping.join()
    # As a file and as a pipe.
    assert found[200] > 10 and found[403] > 10, found
