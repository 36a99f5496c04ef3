"""Pipelines that are always full: they send whenever they can, and read all that comes."""

import os
import selectors
import socket
import time

from . import crowd

NAME = "full pipelines"
CONNECTIONS = 4
CHEAP = b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n\r\n"
FORM = b"POST /form HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n" + b"x" * 200


class Pipeline:
    """One connection: what it sends, and where it is in that."""

    def __init__(self, port, requests):
        self.stream = socket.create_connection(("127.0.0.1", port), 10)
        self.stream.setblocking(False)
        self.requests, self.at = memoryview(requests), 0

    def go_on(self, ready, space):
        """Sends and receives what goes without waiting. Returns how many bytes have come."""
        received = 0
        if ready & selectors.EVENT_READ:
            received = self.stream.recv_into(space)
            if not received:
                raise ConnectionError("closed")
        if ready & selectors.EVENT_WRITE:
            self.at += self.stream.send(self.requests[self.at:])
            self.at %= len(self.requests)
        return received


def run(port, until, results, cpus):
    """The process."""
    os.sched_setaffinity(0, cpus)
    os.nice(5)
    counts = {"connections": 0, "received_bytes": 0}
    space = bytearray(1 << 18)
    with selectors.DefaultSelector() as selector:
        while time.monotonic() < until:
            while len(selector.get_map()) < CONNECTIONS:
                kind = (CHEAP, FORM)[counts["connections"] % 2]
                try:
                    one = Pipeline(port, kind * 600)
                except OSError:
                    time.sleep(0.05)
                    break
                selector.register(one.stream, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
                counts["connections"] += 1
            for key, ready in selector.select(0.2):
                try:
                    counts["received_bytes"] += key.data.go_on(ready, space)
                except BlockingIOError:
                    continue
                except OSError:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    crowd.leave(results, {NAME: counts})
