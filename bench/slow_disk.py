#!/usr/bin/env python3
"""Hot files beside a slow file system.

How long a client waits for a file in memory while others ask for files on a file system where each
operation takes 100 ms.

    sudo bench/slow_disk.py target/release/gustnado [--seconds 10] [--json FILE]

The file system is a small FUSE daemon in this file; it needs /dev/fuse and root. The load is open:
each request of the honest client has a time at which it is due, and its latency counts from then.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

DELAY_S = 0.1
SLOW_FILES = 5000
SMALL_BYTES = 4000
LARGE_BYTES = 2 << 20
HOT_RATE = 400
SLOW_CLIENTS = 8

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
OPENDIR, RELEASEDIR, BATCH_FORGET, DESTROY = 27, 29, 42, 38
ENOENT, ENOSYS = 2, 38
ROOT, FIRST_SMALL, FIRST_LARGE = 1, 2, 1_000_000


class SlowFiles:
    """A read-only file system whose every operation takes a while: s0 … are small, l0 … large."""

    def __init__(self, folder, delay_s):
        self.delay_s = delay_s
        self.fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"slow", folder.encode(), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), f"cannot mount a file system of FUSE at {folder}")

    def serve(self):
        while True:
            try:
                request = os.read(self.fuse, 1 << 20)
            except OSError:
                return
            _size, kind, unique, node = struct.unpack_from("<IIQQ", request)
            if kind in (FORGET, BATCH_FORGET):
                continue
            if kind == INIT:
                words = (7, 31, 1 << 17, 0, 64, 48, 1 << 17, 1, 0, 0, 0)
                self.reply(unique, 0, struct.pack("<IIIIHHIIHHI28x", *words))
                continue
            threading.Thread(target=self.later, args=(kind, unique, node, request[40:])).start()

    def later(self, kind, unique, node, rest):
        if kind in (LOOKUP, GETATTR, OPEN, READ, FLUSH, RELEASE):
            time.sleep(self.delay_s)
        if kind == LOOKUP:
            name = rest.rstrip(b"\0").decode()
            number = name[1:]
            first = {"s": FIRST_SMALL, "l": FIRST_LARGE}.get(name[:1])
            if first is None or not number.isdigit():
                return self.reply(unique, -ENOENT)
            node = first + int(number)
            entry = struct.pack("<QQQQII", node, 0, 0, 0, 0, 0)
            self.reply(unique, 0, entry + self.attributes(node))
        elif kind == GETATTR:
            self.reply(unique, 0, struct.pack("<QII", 0, 0, 0) + self.attributes(node))
        elif kind in (OPEN, OPENDIR):
            self.reply(unique, 0, struct.pack("<QII", 0, 0, 0))
        elif kind == READ:
            _, offset, size = struct.unpack_from("<QQI", rest)
            self.reply(unique, 0, b"x" * max(0, min(size, self.size(node) - offset)))
        elif kind in (RELEASE, RELEASEDIR, FLUSH, DESTROY):
            self.reply(unique, 0)
        else:
            self.reply(unique, -ENOSYS)

    def size(self, node):
        return SMALL_BYTES if node < FIRST_LARGE else LARGE_BYTES

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == ROOT else (0o100644, self.size(node))
        times = (1_600_000_000,) * 3
        return struct.pack(
            "<QQQQQQIIIIIIIIII", node, size, size // 512, *times, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
        )

    def reply(self, unique, error, data=b""):
        try:
            os.write(self.fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except OSError:
            pass  # nobody waits any more


def get(sock, path):
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(1 << 16)
        if not more:
            raise ConnectionError("closed within a head")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
    have = len(body)
    while have < length:
        more = sock.recv(1 << 20)
        if not more:
            raise ConnectionError("closed within a body")
        have += len(more)
    return int(head.split()[1])


def ask_slowly(port, first, large, stop, counts):
    number, sock = first, None
    while not stop.is_set():
        try:
            sock = sock or socket.create_connection(("127.0.0.1", port), timeout=60)
            name = f"/slow/l{number}" if large else f"/slow/s{number % SLOW_FILES}"
            counts.append(get(sock, name))
        except OSError:
            counts.append(0)
            sock = None
        number += SLOW_CLIENTS


def ask_hot(port, path, seconds):
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    get(sock, path)
    latencies, start = [], time.monotonic()
    for number in range(int(seconds * HOT_RATE)):
        due = start + number / HOT_RATE
        pause = due - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        if time.monotonic() - start > 4 * seconds:
            break
        try:
            status = get(sock, path)
        except TimeoutError:
            latencies.append((time.monotonic() - due) * 1000)
            break
        assert status == 200, status
        latencies.append((time.monotonic() - due) * 1000)
    return sorted(latencies)


def quantile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def run(gustnado, root, io, workers, hot, slow, seconds, more):
    command = [gustnado, root, "--port", "0", "--io", io, "--workers", str(workers), *more]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if " listens on " in line:
                port = int(line.rsplit(":", 1)[1].strip().rstrip("/"))
                break
        threading.Thread(target=server.stderr.read, daemon=True).start()
        stop, counts = threading.Event(), []
        clients = [
            threading.Thread(target=ask_slowly, args=(port, one, slow == "large", stop, counts))
            for one in range(SLOW_CLIENTS if slow else 0)
        ]
        for client in clients:
            client.start()
        time.sleep(0.5)
        latencies = ask_hot(port, hot, seconds)
        stop.set()
        for client in clients:
            client.join()
        return {
            "io": io, "workers": workers, "slow": slow or "none",
            "hot": hot,
            "p50_ms": round(quantile(latencies, 0.5), 2),
            "p99_ms": round(quantile(latencies, 0.99), 2),
            "max_ms": round(latencies[-1], 2),
            "hot_answers": len(latencies),
            "slow_answers": counts.count(200), "slow_failures": len(counts) - counts.count(200),
        }
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def main():
    if sys.argv[1:2] == ["--file-system"]:
        SlowFiles(sys.argv[2], float(sys.argv[3])).serve()
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("gustnado")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json")
    parser.add_argument("--slow", nargs="*", default=["", "small", "large"])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    options, more = parser.parse_known_args()
    rows = []
    with tempfile.TemporaryDirectory() as root:
        with open(f"{root}/small", "wb") as file:
            file.write(b"x" * SMALL_BYTES)
        with open(f"{root}/large", "wb") as file:
            file.write(b"x" * (100 << 10))
        mount = f"{root}/slow"
        os.mkdir(mount)
        daemon = subprocess.Popen([sys.executable, __file__, "--file-system", mount, str(DELAY_S)])
        try:
            while not os.path.ismount(mount):
                time.sleep(0.05)
            columns = ["io", "workers", "hot", "slow", "p50_ms", "p99_ms", "max_ms"]
            columns += ["slow_answers", "slow_failures"]
            print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
            for io in ("epoll", "uring"):
                for workers in options.workers:
                    for slow in options.slow:
                        for hot in ("/small", "/large"):
                            what = (io, workers, hot, slow, options.seconds, more)
                            row = run(options.gustnado, root, *what)
                            rows.append(row)
                            cells = (str(row[column]) for column in columns)
                            print("| " + " | ".join(cells) + " |", flush=True)
        finally:
            subprocess.run(["umount", "-l", mount], check=False)
            daemon.kill()
            daemon.wait()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
