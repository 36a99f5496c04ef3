"""The honest client: a process that asks at a steady rate, and checks each response by its bytes.

Each kind of request has a thread. A request is due at a time that does not depend on how long
others took: if the one before is late, the next counts from when it was due. If this process itself
wakes up late, it counts from then, and the delay is noted apart: it is not the server's.

An echo on the server's CPU is asked the same way. Its latency is what the machine adds.
"""

import multiprocessing
import os
import socket
import threading
import time

from . import served

TIMEOUT_S = 10.0
ECHO = b"echo" * 25


class Lane:
    """One kind of request."""

    def __init__(self, name, port, request, body, is_new):
        self.name, self.port, self.is_new = name, port, is_new
        self.request, self.body, self.stream = request, body, None

    def ask(self):
        """Asks once. Raises if the right response does not come."""
        if self.stream is None:
            self.stream = socket.socket()
            self.stream.settimeout(TIMEOUT_S)
            self.stream.connect(("127.0.0.1", self.port))
            self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream.sendall(self.request)
        if self.name == "echo":
            self.read(b"", len(ECHO))
            return
        read = b""
        while b"\r\n\r\n" not in read:
            read += self.more()
        head, _, body = read.partition(b"\r\n\r\n")
        body = self.read(body, len(self.body))
        if not head.startswith(b"HTTP/1.1 200 ") or body != self.body:
            raise ValueError(f"a wrong response: {head[:60]!r}")
        if self.is_new:
            self.close()

    def read(self, read, length):
        pieces, have = [read], len(read)
        while have < length:
            pieces.append(self.more())
            have += len(pieces[-1])
        return b"".join(pieces)

    def more(self):
        piece = self.stream.recv(1 << 17)
        if not piece:
            raise ConnectionError("closed before the response was whole")
        return piece

    def close(self):
        if self.stream is not None:
            self.stream.close()
            self.stream = None


def lanes(port, echo_port):
    """What the honest client does."""
    get = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    form = b"name=value&" * 93
    post = f"POST /form HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(form)}\r\n\r\n"
    paths = ("/small.txt", "/", "/middle.bin")
    small, index, middle = (get.format(path).encode() for path in paths)
    return [
        Lane("a file, connection kept", port, small, served.SMALL, False),
        Lane("a file, new connection", port, index, served.SMALL, True),
        Lane("96 kB, connection kept", port, middle, served.MIDDLE, False),
        Lane("a form by POST", port, post.encode() + form, served.TAKEN, False),
        Lane("echo", echo_port, ECHO, ECHO, False),
    ]


class Found:
    """What one lane has met: latencies, its own delays, when the worst was, failures in words."""

    def __init__(self):
        self.latencies, self.late, self.failures = [], [], []
        self.worst, self.worst_at = 0.0, 0.0


def go_round(lane, found, rate, until):
    """Asks at a rate, until it is time."""
    number, start = 0, time.monotonic()
    while True:
        due = start + number / rate
        number += 1
        if due >= until:
            break
        pause = due - time.monotonic()
        began = due
        if pause > 0:
            time.sleep(pause)
            began = time.monotonic()
            found.late.append(began - due)
        try:
            lane.ask()
        except (OSError, ValueError) as error:
            lane.close()
            found.failures.append(f"{lane.name}: {error!r}")
            # (Requests that were due meanwhile are asked now: each counts.)
        took = time.monotonic() - began
        found.latencies.append(took)
        if took > found.worst:
            found.worst, found.worst_at = took, began - start
    lane.close()


def run(port, echo_port, rate, until, results, cpus):
    """The process: all lanes at once."""
    os.sched_setaffinity(0, cpus)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except PermissionError:
        pass  # its own delays say what that costs
    all_lanes = lanes(port, echo_port)
    found = {lane.name: Found() for lane in all_lanes}
    threads = [threading.Thread(target=go_round, args=(lane, found[lane.name], rate, until))
               for lane in all_lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put({name: vars(one) for name, one in found.items()})


def echo(ports, cpus, until):
    """A process that sends back what comes, where the server runs, as busy as it can be idle."""
    os.sched_setaffinity(0, cpus)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports.put(listener.getsockname()[1])
        listener.settimeout(1)
        while time.monotonic() < until:
            try:
                stream, _ = listener.accept()
            except OSError:
                continue
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream.settimeout(TIMEOUT_S)
            with stream:
                try:
                    while piece := stream.recv(4096):
                        stream.sendall(piece)
                except OSError:
                    pass


class Echo:
    """The echo, as a process."""

    def __init__(self, cpus, seconds):
        ports = multiprocessing.Queue()
        until = time.monotonic() + seconds
        self.process = multiprocessing.Process(target=echo, args=(ports, cpus, until), daemon=True)
        self.process.start()
        self.port = ports.get(timeout=10)

    def stop(self):
        self.process.terminate()
        self.process.join(5)


class Honest:
    """The honest client, as a process."""

    def __init__(self, server, echo_port, rate, seconds, cpus):
        self.results = multiprocessing.Queue()
        self.until = time.monotonic() + seconds
        arguments = (server.port, echo_port, rate, self.until, self.results, cpus)
        self.process = multiprocessing.Process(target=run, args=arguments, daemon=True)
        self.process.start()

    def stop(self):
        """Waits for its end, and returns what it has found."""
        limit = max(0, self.until - time.monotonic()) + 60
        try:
            return self.results.get(timeout=limit)
        finally:
            self.process.join(5)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()


def summary(found):
    """From what lanes have found to figures: in sum, and by lane. Milliseconds."""
    lanes_of = {name: one for name, one in found.items() if name != "echo"}
    latencies = [one for lane in lanes_of.values() for one in lane["latencies"]]
    failures = [one for lane in lanes_of.values() for one in lane["failures"]]
    late = [one for lane in found.values() for one in lane["late"]]
    worst = max(lanes_of.values(), key=lambda lane: lane["worst"])
    return {
        "all": figures(latencies),
        "worst_at": worst["worst_at"],
        "lanes": {name: figures(lane["latencies"]) for name, lane in lanes_of.items()},
        "echo": figures(found["echo"]["latencies"]),
        "echo_failures": len(found["echo"]["failures"]),
        "late": figures(late),
        "failures": failures,
    }


def figures(seconds):
    """Requests, median, 99.9th percentile and worst."""
    ordered = sorted(seconds)
    if not ordered:
        return {"count": 0, "p50": 0.0, "p999": 0.0, "worst": 0.0}
    count = len(ordered)
    middle, high = (ordered[int(count * share)] * 1e3 for share in (0.5, 0.999))
    return {"count": count, "p50": middle, "p999": high, "worst": ordered[-1] * 1e3}
