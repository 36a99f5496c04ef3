#!/usr/bin/env python3
"""The memory of WebSockets that wait: in clear, by TLS, and as streams of HTTP/2.

  bench/websockets.py --server PATH                      10,000 of each, and 100,000 in clear
  bench/websockets.py --server PATH --ways plain --count 100000 --io uring

`PATH` is that of the example `websocket`, built with `--release --features tls`. Each socket has
had one message and its echo. The table has the resident memory of the server for each: beyond that
of an idle connection of the same kind, which has had one request, too.
"""

import argparse
import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Below the usual limit of descriptors, and below half of the ports of an address.
EACH = 12_000
STREAMS = 100
HANDSHAKE = (b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
             b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
REQUEST = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
MESSAGE, ECHO = b"\x81\x81\0\0\0\0x", b"\x81\x01x"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
FIELDS = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http"),
          (b":path", b"/echo"), (b":authority", b"localhost"), (b"sec-websocket-version", b"13")]


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) \
        + payload


def take(link: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        more = link.recv(count - len(taken))
        if not more:
            raise OSError("it was closed")
        taken += more
    return taken


def take_head(link: socket.socket, status: bytes) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        more = link.recv(4096)
        if not more:
            raise OSError("it was closed")
        head += more
    if not head.startswith(b"HTTP/1.1 " + status):
        raise OSError(f"it answers {head[:40]!r}")


def opened(link: socket.socket, is_websocket: bool) -> int:
    """Returns how many sockets there are on a connection: one."""
    link.sendall(HANDSHAKE if is_websocket else REQUEST)
    take_head(link, b"101" if is_websocket else b"404")
    if is_websocket:
        link.sendall(MESSAGE)
        if take(link, len(ECHO)) != ECHO:
            raise OSError("no echo comes")
    return 1


def opened_streams(link: socket.socket, is_websocket: bool) -> int:
    """The same for streams of HTTP/2, or for none on it."""
    link.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    block = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
                     for name, value in FIELDS)
    streams = range(1, 2 * STREAMS, 2) if is_websocket else []
    for stream in streams:
        link.sendall(frame(HEADERS, 4, stream, block) + frame(DATA, 0, stream, MESSAGE))
    echoed, is_alive = set(), False
    link.sendall(frame(PING, 0, 0, b"gustnado"))
    while len(echoed) < len(streams) or not is_alive:
        head = take(link, 9)
        payload = take(link, int.from_bytes(head[:3], "big"))
        if head[3] == DATA and payload == ECHO:
            echoed.add(int.from_bytes(head[5:9], "big"))
        is_alive |= head[3] == PING
    return max(1, len(streams))


def hold(connect: Callable[[], socket.socket], open_one: Callable[[socket.socket, bool], int],
         count: int, is_websocket: bool, tell: int) -> None:
    """Opens connections in a process of its own, and keeps them until it is killed."""
    links, sockets = [], 0
    while sockets < count:
        link = connect()
        sockets += open_one(link, is_websocket)
        links.append(link)
    os.write(tell, b"+")
    signal.pause()


class Held:
    """Connections to a server, in processes of their own."""

    def __init__(self, way: str, port: int, count: int, is_websocket: bool):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.children, (told, tell) = [], os.pipe()
        for number, at in enumerate(range(0, count, EACH)):
            def connect(host: str = f"127.0.0.{10 + number}") -> socket.socket:
                link = socket.socket()
                link.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                link.bind((host, 0))
                link.settimeout(30)
                link.connect(("127.0.0.1", port))
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return context.wrap_socket(link) if way == "tls" else link

            child = os.fork()
            if not child:
                try:
                    open_one = opened_streams if way == "h2" else opened
                    hold(connect, open_one, min(EACH, count - at), is_websocket, tell)
                finally:
                    os._exit(1)
            self.children.append(child)
        os.close(tell)
        for _ in self.children:
            if not os.read(told, 1):
                raise SystemExit(f"{way}: a client has failed")

    def end(self) -> None:
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def resident(process: int) -> int:
    """The process's own memory, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise SystemExit("the server is gone")


def of_each(asked: argparse.Namespace, way: str, count: int, is_websocket: bool) -> float:
    """Returns the bytes of one socket, or of an idle connection."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        settings = {"GUSTNADO_WORKERS": str(asked.workers), "GUSTNADO_IO": asked.io,
                    "GUSTNADO_H2C": "true", "GUSTNADO_QUIET": "true",
                    "GUSTNADO_TIMEOUT_KEEP_ALIVE": "1h", "GUSTNADO_WS_PING": "1h"}
        if way == "tls":
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out",
                            "cert.pem", "-subj", "/CN=localhost"], cwd=folder, check=True,
                           capture_output=True)
            settings |= {"GUSTNADO_TLS_CERT": f"{folder}/cert.pem",
                         "GUSTNADO_TLS_KEY": f"{folder}/key.pem"}
        free.close()
        server = subprocess.Popen([str(asked.server), f"127.0.0.1:{port}"],
                                  env=os.environ | settings)
        try:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                time.sleep(0.1)
            # The first ones make what all share.
            warm = Held(way, port, 200, is_websocket)
            before = resident(server.pid)
            held = Held(way, port, count, is_websocket)
            time.sleep(1)
            each = (resident(server.pid) - before) / count
            held.end()
            warm.end()
        finally:
            server.kill()
            server.wait()
    return each


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, help="the example `websocket`")
    words.add_argument("--ways", default="plain,tls,h2", help="which ones [all]")
    words.add_argument("--count", type=int, default=10_000, help="sockets of each [10000]")
    words.add_argument("--workers", type=int, default=2, help="of the server [2]")
    words.add_argument("--io", default="auto", help="the server's backend [auto]")
    asked = words.parse_args()
    asked.server = asked.server.absolute()
    print("| way | sockets | bytes of each | of an idle connection | beyond it |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way in asked.ways.split(","):
        each = of_each(asked, way, asked.count, True)
        # A stream is one of many of its connection.
        idle = 0 if way == "h2" else of_each(asked, way, asked.count, False)
        print(f"| {way} | {asked.count:,} | {each:.0f} | {idle:.0f} | {each - idle:.0f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
