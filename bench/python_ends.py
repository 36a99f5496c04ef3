#!/usr/bin/env python3
"""Whether `gustnado run` always ends, and loses nothing by it.

    bench/python_ends.py --repeats 1000 --report

Each repeat starts a server, loads it with short requests on fresh and on kept connections, with
streams that never end and with clients that send a byte a second, and then ends or reloads it. It
must be gone within its deadline and a margin, with the exit code due, and every short request must
be answered.

Loopback only; it ends what it has started, by its process id, and nothing else. Beside the Python
that runs it, it needs the package `gustnado` there.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import multiprocessing
import pathlib
import platform
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import machine

GRACE_SECONDS = 1.0
# What the end may take beyond the deadline: leaving the interpreter, on a busy machine.
MARGIN_SECONDS = 1.5

APPLICATIONS = '''
import asyncio, time
import gustnado

async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    path = scope["path"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if path == "/stream":
        while True:
            piece = b"data: x\\n\\n"
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0.05)
    if path == "/wait":
        await asyncio.sleep(0.02)
    await send({"type": "http.response.body", "body": b"here you are"})

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/stream":
        return stream(environ["wsgi.multithread"])
    if environ["PATH_INFO"] == "/wait" and environ["wsgi.multithread"]:
        time.sleep(0.02)
    return [b"here you are"]

def stream(waits):
    while True:
        if waits:
            time.sleep(0.05)
        yield b"data: x\\n\\n" * (1 if waits else 1000)

native = gustnado.App()

@native.get("/wait")
async def wait(request):
    await asyncio.sleep(0.02)
    return "here you are"

@native.get("/stream")
async def endless(request):
    async def pieces():
        while True:
            yield b"data: x\\n\\n"
            await asyncio.sleep(0.05)
    return gustnado.stream(pieces())

@native.get("/")
def short():
    return "here you are"

@native.post("/")
async def slow(request):
    await request.read()
    return "here you are"

plain = gustnado.App()
plain.get("/")(lambda: "here you are")
plain.get("/wait")(lambda: "here you are")
plain.post("/")(lambda request: "here you are")
'''

# Name, arguments, whether its streams go on until they are cut, and what is done to it.
SCENARIOS = {
    "asgi stop": (["ends:asgi"], True, "stop"),
    "asgi on uvloop, stop": (["--loop", "uvloop", "ends:asgi"], True, "stop"),
    "wsgi stop": (["ends:wsgi"], True, "stop"),
    "wsgi, 4 threads, stop": (["--threads", "4", "ends:wsgi"], True, "stop"),
    "native stop": (["ends:native"], True, "stop"),
    "native without a loop, stop": (["ends:plain"], False, "stop"),
    "asgi, 2 processes, stop": (["--workers", "2", "ends:asgi"], True, "stop"),
    "wsgi, 2 processes, stop": (["--workers", "2", "ends:wsgi"], True, "stop"),
    "asgi, 2 processes, reload": (["--workers", "2", "ends:asgi"], True, "reload"),
    "wsgi, 2 processes of 4 threads, reload":
        (["--workers", "2", "--threads", "4", "ends:wsgi"], True, "reload"),
}
if importlib.util.find_spec("uvloop") is None:
    del SCENARIOS["asgi on uvloop, stop"]
BODY = b"here you are"


class Lost(Exception):
    """What came in place of an answer. `crossed`: nothing at all did, on a kept connection."""

    def __init__(self, how, crossed=False):
        super().__init__(how)
        self.crossed = crossed


class Load:
    """Clients around one server."""

    def __init__(self, port):
        self.port = port
        self.counts, self.lost = collections.Counter(), []
        self.is_over = False
        # From here on connections may be refused.
        self.ends_at = None
        self._threads = []

    def start(self, streams):
        jobs = [self._fresh, self._fresh, self._kept, self._kept, self._slow]
        jobs += [self._stream] * (2 if streams else 0)
        for job in jobs:
            thread = threading.Thread(target=self._guarded, args=(job,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def end(self):
        self.is_over = True
        for thread in self._threads:
            thread.join(5)

    def _guarded(self, job):
        try:
            job()
        except Exception as error:
            self._lose(job.__name__, f"the harness has failed: {error!r}")

    def _lose(self, what, how):
        at = "before the end"
        if self.ends_at is not None:
            at = f"{(time.monotonic() - self.ends_at) * 1e3:.1f} ms after the signal"
        self.lost.append(f"{what}: {how}, {at}")

    def _connect(self):
        """A connection; none once there is nobody to connect to, if that may be."""
        try:
            link = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        except (ConnectionRefusedError, ConnectionResetError) as error:
            if self.ends_at is None:
                self._lose("connecting", repr(error))
            self.counts["refused"] += 1
            return None
        except OSError as error:
            self._lose("connecting", repr(error))
            return None
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def _fresh(self):
        """A connection for each request."""
        chance = random.Random()
        while not self.is_over:
            if (link := self._connect()) is None:
                return
            with link:
                if chance.random() < 0.3:
                    time.sleep(chance.random() * 0.002)
                path = "/wait" if chance.random() < 0.2 else "/"
                try:
                    ask(link, path, "Connection: close\r\n")
                    self.counts["fresh"] += 1
                except Lost as lost:
                    self._lose("fresh", str(lost))
            time.sleep(chance.random() * 0.003)

    def _kept(self):
        """One connection for as many requests as it lasts."""
        chance = random.Random()
        while not self.is_over:
            if (link := self._connect()) is None:
                return
            is_first = True
            with link:
                while not self.is_over:
                    if chance.random() < 0.5:
                        time.sleep(chance.random() * 0.004)
                    if not is_first and select.select([link], [], [], 0)[0]:
                        self.counts["closed while idle"] += 1
                        break
                    try:
                        closes = ask(link, "/wait" if chance.random() < 0.2 else "/")
                    except Lost as lost:
                        if lost.crossed and not is_first:
                            self.counts[f"crossed: {lost}"] += 1
                        else:
                            self._lose("kept", str(lost))
                        break
                    is_first = False
                    self.counts["kept"] += 1
                    if closes:
                        self.counts["told to close"] += 1
                        if read(link) != b"":
                            self._lose("kept", "bytes behind the last answer")
                        break

    def _stream(self):
        """An answer without an end, and somebody who reads it."""
        while not self.is_over:
            if (link := self._connect()) is None:
                return
            with link:
                link.sendall(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
                if not (read(link) or b"").startswith(b"HTTP/1.1 200 "):
                    self.counts["streams that did not begin"] += 1
                    continue
                self.counts["streams"] += 1
                link.settimeout(0.2)
                while not self.is_over:
                    try:
                        if not link.recv(65536):
                            break
                        # Some 30 MB a second; more would keep this process from its clock.
                        time.sleep(0.002)
                    except TimeoutError:
                        continue
                    except OSError:
                        break

    def _slow(self):
        """A request of a byte a second."""
        if (link := self._connect()) is None:
            return
        with link:
            for byte in b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello":
                try:
                    link.send(bytes([byte]))
                except OSError:
                    return
                for _ in range(10):
                    if self.is_over:
                        return
                    time.sleep(0.1)


def ask(link, path, fields=""):
    """Sends a request and reads its answer. Returns whether the server says that it closes."""
    try:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
    except OSError as error:
        raise Lost(f"{type(error).__name__} while sending", True) from None
    got = b""
    while not (b"\r\n\r\n" in got and is_whole(got)):
        piece = read(link)
        if not piece:
            how = "a reset" if piece is None else "the end"
            raise Lost(how if not got else f"{how} after {got[:300]!r}", not got)
        got += piece
    if not got.startswith(b"HTTP/1.1 200 "):
        raise Lost(f"another answer: {got[:60]!r}")
    return b"\r\nconnection: close\r\n" in got.lower()


def is_whole(got):
    head, _, body = got.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    return BODY in body


def read(link):
    """Bytes; none at the end; `None` where the connection was reset."""
    try:
        return link.recv(65536)
    except OSError:
        return None


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Served:
    """A server in a process of its own."""

    def __init__(self, folder, arguments, extra):
        self.port = free_port()
        self._log = tempfile.NamedTemporaryFile("w+", dir=folder, suffix=".log")
        command = [
            sys.executable, "-m", "gustnado", "run", "--app-dir", folder, "--port", str(self.port),
            "--timeout-graceful-shutdown", f"{GRACE_SECONDS:g}s", *extra, *arguments,
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )

    def said(self):
        with open(self._log.name) as log:
            return log.read()

    def wait_for(self, words, seconds=20, times=1):
        until = time.monotonic() + seconds
        while self.said().count(words) < times:
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"it never said {words!r}:\n{self.said()}")
            time.sleep(0.01)

    def end(self, load):
        """Returns how long it took, and the exit code."""
        load.ends_at = began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(GRACE_SECONDS + 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "never ended"
        return time.monotonic() - began, code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()


def repeat(name, folder, extra=()):
    """One repeat. Returns what came of it."""
    arguments, streams, what = SCENARIOS[name]
    served = Served(folder, arguments, extra)
    wrong, took, counts = [], 0.0, {}
    try:
        served.wait_for("listens on")
        load = Load(served.port)
        load.start(streams)
        time.sleep(0.1 + random.random() * 0.1)
        if what == "reload":
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("has ended", times=2)
            # Whom the workers before have cut is served by those after them.
            time.sleep(0.05)
            wrong += [f"in the reload: {one}" for one in load.lost]
            crossed = sum(n for key, n in load.counts.items() if key.startswith("crossed"))
            if crossed:
                wrong.append(f"in the reload: {crossed} requests crossed the end")
        before = len(load.lost)
        took, code = served.end(load)
        load.end()
        wrong += load.lost[before if what == "reload" else 0:]
        counts = dict(load.counts)
        if code != 0:
            wrong.append(f"exit code {code}: {served.said()[-600:]}")
        if took > GRACE_SECONDS + MARGIN_SECONDS:
            wrong.append(f"it took {took:.2f} s to end: {served.said()[-600:]}")
        if "Traceback" in served.said() or " ERROR " in served.said():
            wrong.append(f"an error in the log: {served.said()[-1500:]}")
    except RuntimeError as error:
        wrong.append(str(error))
    finally:
        served.close()
    return name, took, code_text(locals().get("code")), counts, wrong


def code_text(code):
    return "none" if code is None else str(code)


def hold(names, repeats, lanes, extra):
    """All repeats, some at a time. Yields what came of each."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "ends.py").write_text(APPLICATIONS)
        processes = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(lanes, mp_context=processes) as pool:
            jobs = [pool.submit(repeat, names[at % len(names)], folder, extra)
                    for at in range(repeats)]
            for job in concurrent.futures.as_completed(jobs):
                yield job.result()


class Tally:
    """What has come of the repeats of one scenario."""

    def __init__(self):
        self.repeats, self.bad = 0, 0
        self.took, self.codes, self.counts = [], collections.Counter(), collections.Counter()
        self.wrong = collections.Counter()

    def add(self, took, code, counts, wrong):
        self.repeats += 1
        self.bad += bool(wrong)
        self.took.append(took)
        self.codes[code] += 1
        self.counts.update(counts)
        self.wrong.update(wrong)


def page(tallies, seconds, options, about):
    """The outcome for people."""
    repeats = sum(tally.repeats for tally in tallies.values())
    good = repeats - sum(tally.bad for tally in tallies.values())
    lines = [
        "# Ends of `gustnado run`", "",
        f"{good} of {repeats} repeats ended as they should.", "",
        f"- commit {about['commit']}, Linux {about['kernel']}, {about['cpus']}, "
        f"Python {platform.python_version()}, {options.lanes} repeats at a time, "
        f"{seconds:.0f} s in all",
        f"- `--timeout-graceful-shutdown {GRACE_SECONDS:g}s`; longer than "
        f"{GRACE_SECONDS + MARGIN_SECONDS:g} s from the signal to the end is a failure", "",
        "| scenario | repeats | as they should | longest end | exit codes "
        "| short requests answered | told to close | crossed the end |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, tally in tallies.items():
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(tally.codes.items()))
        crossed = sum(n for key, n in tally.counts.items() if key.startswith("crossed"))
        answered = tally.counts["fresh"] + tally.counts["kept"]
        lines.append(
            f"| {name} | {tally.repeats} | {tally.repeats - tally.bad} | {max(tally.took):.2f} s "
            f"| {codes} | {answered} | {tally.counts['told to close']} | {crossed} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--lanes", type=int, default=6, help="repeats at a time")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="may be repeated")
    parser.add_argument("--report", action="store_true", help="write docs/results/python-ends.md")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    parser.add_argument("--extra", action="append", default=[], help="a word for `gustnado run`")
    options = parser.parse_args()
    names = options.only or list(SCENARIOS)
    tallies, began = {name: Tally() for name in names}, time.monotonic()
    for name, took, code, counts, wrong in hold(names, options.repeats, options.lanes,
                                                options.extra):
        tallies[name].add(took, code, counts, wrong)
        for one in wrong:
            print(f"{name}: {one}", flush=True)
    about = machine.describe()
    text = page(tallies, time.monotonic() - began, options, about)
    print(text)
    for name, tally in tallies.items():
        print(name, dict(tally.counts), file=sys.stderr)
    if options.report:
        machine.page("python-ends.md", about, options.publish).write_text(text)
        found = {name: {**vars(tally), "took": sorted(round(one, 3) for one in tally.took)}
                 for name, tally in tallies.items()}
        machine.BUILD.mkdir(parents=True, exist_ok=True)
        (machine.BUILD / "python-ends.json").write_text(json.dumps(found, indent=1) + "\n")
    return 1 if any(tally.bad for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
