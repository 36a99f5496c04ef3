"""The same program on Twisted's epoll reactor and on this one, and the same bytes to both."""

import re
import select
import shutil
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Server, free_port

PROGRAMS = Path(__file__).parent / "programs"
REACTORS = ("epoll", "gustnado")

# What differs by its nature, and what replaces it.
MASKS = [
    (rb"(Date|Expires): [^\r]*", rb"\1: then"),
    (rb"(; expires=)[^;\r]*", rb"\1then"),
    (rb"(TWISTED_SESSION=)[0-9a-f]{64}", rb"\1some"),
    (rb'((?:nonce|opaque)=")[^"]*', rb"\1some"),
    (rb"0x[0-9a-f]{8,}", b"0xsomewhere"),
]


def mask(came, port):
    for pattern, instead in MASKS:
        came = re.sub(pattern, instead, came)
    # (As a word: a digest may have the same digits.)
    return re.sub(rb"\b%d\b" % port, b"PORT", came)


class Pair:
    """Two servers in processes of their own."""

    def __init__(self, folder, program, *words):
        self.words = words

        def start(reactor):
            port, own = free_port(), folder / reactor
            shutil.copytree(PROGRAMS / "files", own / "files")
            command = [sys.executable, "-B", str(PROGRAMS / program), reactor, str(port), *words]
            # (Sets of words are sent in the same order.)
            return Server(own, command, port, env={"PYTHONHASHSEED": "0"})

        with ThreadPoolExecutor(2) as threads:
            self.servers = list(threads.map(start, REACTORS))

    def kill(self):
        for server in self.servers:
            server.kill()

    def end(self):
        for server in self.servers:
            server.end()

    def ask(self, pieces, pause=0.0005, quiet=0.12):
        """What comes of these bytes from each: (bytes, "open" or "closed")."""
        epoll, ours = self.servers
        expected = exchange(epoll, pieces, pause, Until(quiet))
        until = Until(quiet, len(expected[0]), expected[1])
        return expected, exchange(ours, pieces, pause, until)

    def differ(self, pieces):
        """The two, where they differ, and not only because the machine was slow just then."""
        for pause, quiet in ((0.0005, 0.12), (0.005, 0.6), (0.02, 1.5)):
            epoll, ours = self.ask(pieces, pause, quiet)
            if epoll == ours:
                return None
        return epoll, ours


class Compared:
    """All cases, sent to a pair: several at a time, for most of it is waiting."""

    def __init__(self, pair, cases, at_once=24):
        self.pair = pair
        with ThreadPoolExecutor(at_once) as threads:
            answers = threads.map(pair.ask, cases.values())
            self.answers = dict(zip(cases, answers))

    def check(self, name, cut):
        epoll, ours = self.answers[name]
        if epoll != ours and (differing := self.pair.differ(cut)):
            epoll, ours = differing
            assert ours == epoll


class Until:
    """When all has come: there was nothing more for a while, and what was expected is there."""

    def __init__(self, quiet, count=0, state="open"):
        self.quiet, self.count, self.state = quiet, count, state

    def wait(self, came, patience=5):
        is_less = came < self.count or self.state == "closed"
        return patience if is_less else self.quiet


def exchange(server, pieces, pause, until):
    """Sends pieces, and reads all the while: a server may respond, and close, at the first byte."""
    came, state = b"", "open"
    with server.connect() as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            more, state = read(link, 0)
            came += more
            if state == "closed":
                break
            try:
                link.sendall(piece)
            except OSError:
                break
            time.sleep(pause if len(pieces) > 1 else 0)
        while state == "open":
            more, state = read(link, until.wait(len(came)))
            came += more
            if not more:
                break
    return mask(came, server.port), state


def read(link, wait):
    """What is there after so many seconds at most."""
    if not select.select([link], [], [], wait)[0]:
        return b"", "open"
    try:
        more = link.recv(1 << 20)
    except ConnectionResetError:
        return b"", "closed"
    return more, "open" if more else "closed"
