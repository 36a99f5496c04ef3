#!/usr/bin/env python3
"""Measures the Python package beside what it is to be better than.

  bench/python.py                        everything, some 15 minutes
  bench/python.py --only http            hello by each way in, beside granian and uvicorn
  bench/python.py --only json            10 KB of JSON, by frameworks too
  bench/python.py --only stream          a megabyte in pieces of 64 KiB, by two generators
  bench/python.py --only twisted         twisted.web and Cyclone on both reactors
  bench/python.py --only echo            a protocol without HTTP on both reactors
  bench/python.py --only busy            with a second thread that computes
  bench/python.py --only idle            memory of 10,000 idle connections
  bench/python.py --python VENV/bin/python --rounds 5 --seconds 3
  bench/python.py --before OLD/bin/python   ours beside an older gustnado; printed, not written

VENV has the package and what it is compared with; what is missing is said, and left out:
  pip install ./python granian "uvicorn[standard]" flask fastapi twisted
  pip install --no-deps cyclone

A server has one CPU, the generator (target/release/gustnado bench, or wrk) another; contenders
take turns. Writes docs/results/python.md; what was not measured this time stays there.
"""

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import machine
from contenders import free_port, send_signal, tree
from machine import LOAD_CPU, SERVER_CPU, BenchError, pinned, say

PROGRAMS = machine.HERE / "python"
CONNECTIONS = 64
IDLE = 10_000
GUSTNADO = ["-m", "gustnado", "run", "--app-dir", "{programs}", "--port", "{port}"]
GRANIAN = ["-m", "granian", "--host", "127.0.0.1", "--port", "{port}", "--no-ws",
           "--working-dir", "{programs}"]
UVICORN = ["-m", "uvicorn", "--host", "127.0.0.1", "--port", "{port}", "--app-dir", "{programs}"]
TWISTED = ["{programs}/twisted_programs.py"]


@dataclass(frozen=True)
class Contender:
    name: str
    words: list
    needs: str
    path: str = "/"
    # The interpreter, where it is another one than the others'.
    python: str = ""
    # What this one is measured by, and how many times less it is to take.
    beside: str = ""
    wanted: float = 0.0


def ours(name, app, *more, beside, wanted, path="/"):
    words = [*GUSTNADO, f"hellos:{app}", *more]
    return Contender(name, words, "gustnado", path, "", beside, wanted)


def granian(name, app, path="/"):
    words = [*GRANIAN, "--interface", name.split()[1].lower(), f"hellos:{app}"]
    return Contender(name, words, "granian", path)


def on_reactor(name, reactor, program, *more, beside="", wanted=0.0):
    words = [*TWISTED, reactor, program, "{port}", *more]
    needs = "cyclone.web" if program == "cyclone" else "twisted"
    path = "/hello.txt" if program == "files" else "/"
    return Contender(name, words, needs, path, "", beside, wanted)


HTTP = [
    ours("handler", "native", beside="granian RSGI", wanted=2.5),
    granian("granian RSGI", "rsgi"),
    ours("ASGI", "asgi", beside="granian ASGI", wanted=1.6),
    granian("granian ASGI", "asgi"),
    ours("ASGI, asyncio", "asgi", "--loop", "asyncio", beside="uvicorn", wanted=3.5),
    Contender("uvicorn", [*UVICORN, "--no-access-log", "hellos:asgi"], "uvicorn"),
    ours("ASGI, logged", "asgi", "--access-log", "{folder}/ours.log", beside="uvicorn, logged",
         wanted=3.5),
    Contender("uvicorn, logged", [*UVICORN, "hellos:asgi"], "uvicorn"),
    ours("WSGI", "wsgi", beside="granian WSGI", wanted=2.5),
    granian("granian WSGI", "wsgi"),
    ours("Flask", "flask", beside="granian WSGI Flask", wanted=1.3),
    granian("granian WSGI Flask", "flask"),
]
JSON = [
    ours("handler", "native", beside="ASGI", wanted=1.0, path="/json"),
    ours("ASGI", "json_asgi", beside="granian ASGI", wanted=1.0),
    granian("granian ASGI", "json_asgi"),
    ours("WSGI", "json_wsgi", beside="granian WSGI", wanted=1.0),
    granian("granian WSGI", "json_wsgi"),
    ours("Flask", "flask", beside="granian WSGI Flask", wanted=1.0, path="/json"),
    granian("granian WSGI Flask", "flask", "/json"),
    ours("FastAPI", "fastapi", beside="granian ASGI FastAPI", wanted=1.0, path="/json"),
    granian("granian ASGI FastAPI", "fastapi", "/json"),
]
# At most nine tenths of granian's CPU.
STREAM = [
    ours("handler", "native", beside="granian RSGI", wanted=1.11, path="/stream"),
    granian("granian RSGI", "stream_rsgi"),
    ours("ASGI", "stream_asgi", beside="granian ASGI", wanted=1.11),
    granian("granian ASGI", "stream_asgi"),
    ours("WSGI", "stream_wsgi", beside="granian WSGI", wanted=1.11),
    granian("granian WSGI", "stream_wsgi"),
]
TWISTED_WEB = [
    on_reactor("twisted.web", "gustnado", "site", beside="twisted.web, epoll", wanted=3.5),
    on_reactor("twisted.web, epoll", "epoll", "site"),
    on_reactor("twisted.web, logged", "gustnado", "site", "{folder}/ours.log",
               beside="twisted.web, logged, epoll", wanted=2.5),
    on_reactor("twisted.web, logged, epoll", "epoll", "site", "{folder}/theirs.log"),
    on_reactor("static.File, logged", "gustnado", "files", "{folder}/ours.log",
               beside="static.File, logged, epoll", wanted=1.0),
    on_reactor("static.File, logged, epoll", "epoll", "files", "{folder}/theirs.log"),
    on_reactor("Cyclone", "gustnado", "cyclone", beside="Cyclone, epoll", wanted=1.5),
    on_reactor("Cyclone, epoll", "epoll", "cyclone"),
]
ECHO = [
    on_reactor("echo", "gustnado", "echo", beside="echo, epoll", wanted=1.0),
    on_reactor("echo, epoll", "epoll", "echo"),
]
BUSY = [ours("handler, and a busy thread", "busy", beside="", wanted=0.0)]
P99_WANTED_MS = 6.0
IDLE_WANTED_BYTES = 1024


class Server:
    """A contender in processes of its own, on one CPU."""

    def __init__(self, python, contender):
        self.folder = tempfile.TemporaryDirectory()
        (Path(self.folder.name) / "hello.txt").write_bytes(b"Hello, world!")
        self.port = free_port()
        places = {"port": self.port, "programs": PROGRAMS, "folder": self.folder.name}
        words = [word.format(**places) for word in contender.words]
        self.process = subprocess.Popen(
            [*pinned(SERVER_CPU), contender.python or python, *words], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
            cwd=self.folder.name, env={**os.environ, "PYTHONPATH": str(PROGRAMS)},
        )
        until = time.monotonic() + 20
        while not self.answers():
            if time.monotonic() > until:
                raise BenchError(f"{contender.name} does not listen")
            time.sleep(0.05)
        time.sleep(0.3)

    def answers(self):
        if self.process.poll() is not None:
            raise BenchError(f"{self.process.args}: it has ended with {self.process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def cpu_us(self):
        """CPU of all its threads so far."""
        total = 0
        for pid in tree(self.process.pid):
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                total += int(task.read_text().split()[0]) / 1000
        return total

    def memory(self):
        """Bytes in memory that are the processes' own."""
        texts = (Path(f"/proc/{pid}/status").read_text() for pid in tree(self.process.pid))
        return sum(int(re.search(r"RssAnon:\s+(\d+)", text)[1]) * 1024 for text in texts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pids = tree(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in pids:
                send_signal(pid, signal.SIGKILL)
            self.process.wait()
        self.folder.cleanup()


def load(port, seconds, path="/"):
    """Drives a server, and returns what the generator says."""
    words = [*pinned(LOAD_CPU), machine.gustnado(), "bench", "--json", "-c", CONNECTIONS,
             "-t", 1, "-d", f"{seconds * 1000:.0f}ms", f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise BenchError(f"the generator has failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    errors = {name: count for name, count in found["errors"].items() if count}
    if errors or not found["requests"]:
        raise BenchError(f"{found['requests']} requests, errors {errors}")
    p99_us = found["latency_us"]["percentiles"]["99"]
    return {"requests": found["requests"], "rate": found["requests_per_s"], "p99_ms": p99_us / 1000}


def load_by_wrk(port, seconds, path="/"):
    """The same by wrk."""
    words = [*pinned(LOAD_CPU), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s",
             "--latency", f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    said = re.search(r"(\d+) requests in", done.stdout)
    faults = re.search(r"Non-2xx.*|Socket errors.*", done.stdout)
    if done.returncode or not said or faults:
        raise BenchError(f"wrk: {faults[0] if faults else done.stdout + done.stderr}")
    p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", done.stdout).groups()
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]
    p99_ms = float(p99) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
    return {"requests": int(said[1]), "rate": float(rate), "p99_ms": p99_ms}


def measure_http(python, contender, seconds, drive=load):
    with Server(python, contender) as server:
        drive(server.port, 1, contender.path)
        before = server.cpu_us()
        try:
            found = drive(server.port, seconds, contender.path)
        except BenchError as error:
            raise BenchError(f"{contender.name}: {error}") from error
        used = server.cpu_us() - before
    return {"cpu_us": used / found.pop("requests"), **found}


def measure_echo(python, contender, seconds, connections):
    with Server(python, contender) as server:
        words = [*pinned(LOAD_CPU), python, str(PROGRAMS / "echoing.py"), str(server.port),
                 str(connections)]
        subprocess.run([*words, "0.5"], check=True, capture_output=True)
        before = server.cpu_us()
        done = subprocess.run([*words, str(seconds)], check=True, capture_output=True, text=True)
        used = server.cpu_us() - before
    return {"cpu_us": used / int(done.stdout)}


def in_turn(contenders, rounds, measure):
    """Each one once a round."""
    found = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        for contender in contenders:
            found[contender.name].append(measure(contender))
            say(f"round {number + 1}: {contender.name}: {found[contender.name][-1]}")
    return {name: summary(samples) for name, samples in found.items()}


def summary(samples):
    middle = {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}
    costs = [sample["cpu_us"] for sample in samples]
    return {**middle, "spread": [min(costs), max(costs)]}


def measure_idle(python):
    contender = ours("handler", "native", "--timeout-keep-alive", "600s", beside="", wanted=0.0)
    with Server(python, contender) as server:
        load(server.port, 1)
        before = server.memory()
        links = []
        for _ in range(IDLE):
            link = socket.create_connection(("127.0.0.1", server.port))
            link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            links.append(link)
        for link in links:
            link.settimeout(10)
            if not link.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise BenchError("an idle connection was not answered")
        time.sleep(1)
        each = (server.memory() - before) / IDLE
        for link in links:
            link.close()
    return {"connections": IDLE, "bytes_each": each}


def available(python, contenders):
    """Those that can be started; the others are named."""
    there = []
    for contender in contenders:
        done = subprocess.run([python, "-c", f"import {contender.needs}"], capture_output=True)
        if done.returncode:
            say(f"{contender.name}: {contender.needs} is not installed in {python}: left out")
        else:
            there.append(contender)
    return there


def versions(python):
    names = ("gustnado", "granian", "uvicorn", "uvloop", "httptools", "flask", "fastapi", "twisted",
             "cyclone")
    text = ("import importlib.metadata as m, json, platform\n"
            "found = {'python': platform.python_version()}\n"
            f"for name in {names!r}:\n"
            "    try: found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(found))")
    return json.loads(subprocess.run([python, "-c", text], capture_output=True, text=True).stdout)


def page(found):
    lines = ["# Python beside others", "",
             "Written by `bench/python.py`. CPU is that of the server's threads (schedstat), in "
             "microseconds per request; medians, with the least and the most of all rounds. The "
             "server has one CPU, the generator another; contenders take turns in each round.", ""]
    for name, title in SECTIONS:
        if name in found:
            lines += [f"## {title}", "", *TABLES[name](found[name]), "", *about(found[name]), ""]
    return "\n".join(lines)


def about(part):
    words = ", ".join(f"{name} {version}" for name, version in part["versions"].items())
    return [f"Commit {part['commit']}, {part['date']}, kernel {part['kernel']}, {part['cpus']}; "
            f"{part['rounds']} rounds of {part['seconds']:g} s. {words}."]


def table_of_costs(part):
    lines = ["| who | CPU µs | least to most | requests/s | p99 ms | times less than | wanted |",
             "| --- | ---: | ---: | ---: | ---: | --- | ---: |"]
    rows = part["rows"]
    for name, row in rows.items():
        ratio, wanted = "", ""
        if row.get("beside") in rows:
            times = rows[row["beside"]]["cpu_us"] / row["cpu_us"]
            ratio = f"**{times:.2f}** {row['beside']}"
            wanted = f"{row['wanted']:g}"
        least, most = row["spread"]
        rate = f"{row['rate']:,.0f}" if "rate" in row else ""
        p99 = f"{row['p99_ms']:.2f}" if "p99_ms" in row else ""
        lines.append(f"| {name} | {row['cpu_us']:.2f} | {least:.2f} to {most:.2f} | {rate} | "
                     f"{p99} | {ratio} | {wanted} |")
    return lines


def table_of_busy(part):
    (row,) = part["rows"].values()
    return [f"A handler, and a second Python thread that never rests, both on one CPU: "
            f"{row['rate']:,.0f} requests/s, p99 **{row['p99_ms']:.2f} ms** (wanted: at most "
            f"{P99_WANTED_MS:g} ms)."]


def table_of_idle(part):
    row = part["rows"]
    return [f"{row['connections']:,} connections that have asked once and are kept: "
            f"**{row['bytes_each']:.0f} bytes** of the process's memory for each (wanted: at most "
            f"{IDLE_WANTED_BYTES})."]


SECTIONS = [("http", "Hello by each way in"), ("json", "10 KB of JSON"),
            ("stream", "A megabyte in pieces of 64 KiB"), ("twisted", "twisted.web and Cyclone"),
            ("echo", "A protocol without HTTP"), ("busy", "Beside a busy thread"),
            ("idle", "Idle connections")]
TABLES = {"http": table_of_costs, "json": table_of_costs, "stream": table_of_costs,
          "twisted": table_of_costs, "echo": table_of_costs,
          "busy": table_of_busy, "idle": table_of_idle}


# What is measured beside an older gustnado.
WITH_BEFORE = ("http", "json", "stream", "twisted")


def rows_of(contenders, found):
    return {one.name: {**found[one.name], "beside": one.beside, "wanted": one.wanted}
            for one in contenders}


def measured(part, asked):
    """The rows of one part."""
    python, rounds, seconds = asked.python, asked.rounds, asked.seconds
    if part == "idle":
        return measure_idle(python)
    if part == "echo":
        return in_variants(python, ECHO, rounds, {
            f"{count:,}": lambda one, count=count: measure_echo(python, one, seconds, count)
            for count in (1, 1000)})
    contenders = {"http": HTTP, "json": JSON, "stream": STREAM, "twisted": TWISTED_WEB,
                  "busy": BUSY}[part]
    if asked.before:
        contenders = beside_before([one for one in contenders if one.beside], asked.before)
    if part == "stream":
        return in_variants(python, contenders, rounds, {
            name: lambda one, drive=drive: measure_http(python, one, seconds, drive)
            for name, drive in (("gustnado bench", load), ("wrk", load_by_wrk))})
    contenders = available(python, contenders)
    found = in_turn(contenders, rounds, lambda one: measure_http(python, one, seconds))
    return rows_of(contenders, found)


def in_variants(python, contenders, rounds, variants):
    """The rows of a part that is measured in several ways."""
    rows = {}
    contenders = available(python, contenders)
    for variant, measure in variants.items():
        found = in_turn(contenders, rounds, measure)
        for name, row in rows_of(contenders, found).items():
            beside = f"{row['beside']}, {variant}" if row["beside"] else ""
            rows[f"{name}, {variant}"] = {**row, "beside": beside}
    return rows


def beside_before(contenders, python):
    """Each with its like from another interpreter, whose gustnado is an older one."""
    pairs = []
    for one in contenders:
        before = f"{one.name}, before"
        pairs += [replace(one, beside=before, wanted=1.0),
                  replace(one, name=before, python=python, beside="")]
    return pairs


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--only", choices=[name for name, _ in SECTIONS])
    words.add_argument("--python", default=str(machine.ROOT / "target/python/bin/python"))
    words.add_argument("--before", metavar="PYTHON",
                       help="an interpreter whose gustnado ours is held against")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--seconds", type=float, default=3)
    words.add_argument("--publish", action="store_true", help="also over another machine's page")
    asked = words.parse_args()
    machine.raise_descriptor_limit()
    path = machine.BUILD / "python.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(path.read_text()) if path.exists() else {}
    parts = WITH_BEFORE if asked.before else [part for part, _ in SECTIONS]
    for part in parts:
        if asked.only in (None, part):
            rows = measured(part, asked)
            if asked.before:
                print("\n".join(table_of_costs({"rows": rows})))
                continue
            known = machine.describe()
            found[part] = {
                "rows": rows,
                "rounds": asked.rounds, "seconds": asked.seconds,
                "versions": versions(asked.python),
                **{key: known[key] for key in ("commit", "date", "kernel", "cpus")},
            }
            path.write_text(json.dumps(found, indent=1) + "\n")
    if not asked.before:
        place = machine.page("python.md", asked.publish)
        place.write_text(page(found))
        say(f"written: {place}, and the raw numbers to {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        say(f"python.py: {error}")
        sys.exit(1)
