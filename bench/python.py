#!/usr/bin/env python3
"""Measures what no contest can of the Python package; prints sections for docs/results/python.md.

  bench/python.py                        everything, some two minutes
  bench/python.py --only echo            a protocol without HTTP on both reactors
  bench/python.py --only busy            with a second thread that computes
  bench/python.py --only idle            memory of 10,000 idle connections
  bench/python.py --python VENV/bin/python --rounds 5 --seconds 3

VENV has the package and Twisted: pip install ./python twisted. A server has one CPU, the generator
(target/release/gustnado bench) another. contests/python.toml measures what a request costs.
"""

import argparse
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine
from contenders import free_port, send_signal, tree
from machine import LOAD_CPU, SERVER_CPU, BenchError, pinned, say

PROGRAMS = machine.HERE / "python"
CONNECTIONS = 64
IDLE = 10_000
IDLE_WANTED_BYTES = 1024
P99_WANTED_MS = 6.0
GUSTNADO = ["-m", "gustnado", "run", "--app-dir", PROGRAMS]


class Server:
    """A program in Python on one CPU. Its last argument is the port that it listens on."""

    def __init__(self, python, *words):
        self.port = free_port()
        self.process = subprocess.Popen(
            [*pinned(SERVER_CPU), python, *words, str(self.port)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
        )
        until = time.monotonic() + 20
        while not self.listens():
            if time.monotonic() > until:
                raise BenchError(f"{self.process.args} does not listen")
            time.sleep(0.05)
        time.sleep(0.3)

    def listens(self):
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


def load(port, seconds):
    """Loads a server; returns requests per second and the 99th percentile in milliseconds."""
    words = [*pinned(LOAD_CPU), machine.gustnado(), "bench", "--json", "-c", CONNECTIONS,
             "-t", 1, "-d", f"{seconds * 1000:.0f}ms", f"http://127.0.0.1:{port}/"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise BenchError(f"the generator has failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    errors = {name: count for name, count in found["errors"].items() if count}
    if errors or not found["requests"]:
        raise BenchError(f"{found['requests']} requests, errors {errors}")
    return found["requests_per_s"], found["latency_us"]["percentiles"]["99"] / 1000


def echo_cost(python, seconds, reactor, connections):
    """CPU-microseconds of the server for each message."""
    with Server(python, PROGRAMS / "echo_server.py", reactor) as server:
        words = [*pinned(LOAD_CPU), python, PROGRAMS / "echo_client.py", str(server.port),
                 str(connections)]
        subprocess.run([*words, "0.5"], check=True, capture_output=True)
        before = server.cpu_us()
        done = subprocess.run([*words, str(seconds)], check=True, capture_output=True, text=True)
        return (server.cpu_us() - before) / int(done.stdout)


def measure_echo(asked):
    lines = ["## A protocol without HTTP", "",
             "CPU of the server in microseconds for each message of 64 bytes, which an echo sends "
             "back: medians, with the least and the most of all rounds. Goal: no more than on "
             "Twisted's epoll reactor.", "",
             "| connections | Gustnado's reactor | Twisted's epoll | times less |",
             "| ---: | ---: | ---: | ---: |"]
    for connections in (1, 1000):
        costs = {"gustnado": [], "epoll": []}
        for _ in range(asked.rounds):
            for reactor, found in costs.items():
                found.append(echo_cost(asked.python, asked.seconds, reactor, connections))
                say(f"echo, {connections}, {reactor}: {found[-1]:.2f}")
        ours, theirs = map(statistics.median, costs.values())
        cells = [f"{statistics.median(one):.2f} ({min(one):.2f} to {max(one):.2f})"
                 for one in costs.values()]
        lines.append(f"| {connections:,} | {cells[0]} | {cells[1]} | **{theirs / ours:.2f}** |")
    return lines


def measure_busy(asked):
    rounds = []
    for _ in range(asked.rounds):
        with Server(asked.python, *GUSTNADO, "--factory", "hello:busy", "--port") as server:
            load(server.port, 1)
            rounds.append(load(server.port, asked.seconds))
            say(f"busy: {rounds[-1]}")
    rate, p99_ms = map(statistics.median, zip(*rounds, strict=True))
    return ["## Next to a busy thread", "",
            f"A handler, and a second Python thread that never rests, both on one CPU: {rate:,.0f} "
            f"requests/s, p99 **{p99_ms:.2f} ms** (goal: at most {P99_WANTED_MS:g} ms)."]


def measure_idle(asked):
    with Server(asked.python, *GUSTNADO, "hello:app", "--timeout-keep-alive", "600s",
                "--port") as server:
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
                raise BenchError("an idle connection got no response")
        time.sleep(1)
        each = (server.memory() - before) / IDLE
        for link in links:
            link.close()
    return ["## Idle connections", "",
            f"{IDLE:,} connections that have sent one request and are kept: **{each:.0f} bytes** "
            f"of the process's memory for each (goal: at most {IDLE_WANTED_BYTES})."]


PARTS = {"echo": measure_echo, "busy": measure_busy, "idle": measure_idle}


def conditions(asked):
    text = ("import importlib.metadata as m, platform\n"
            "print('python', platform.python_version(), end='')\n"
            "for name in ('gustnado', 'twisted'): print(f', {name} {m.version(name)}', end='')")
    versions = subprocess.run([asked.python, "-c", text], capture_output=True, text=True).stdout
    known = machine.describe()
    return (f"Commit {known['commit']}, {known['date']}, kernel {known['kernel']}, "
            f"{known['cpus']}; {asked.rounds} rounds of {asked.seconds:g} s. {versions}.")


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--only", choices=PARTS)
    words.add_argument("--python", default=str(machine.ROOT / "target/python/bin/python"))
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--seconds", type=float, default=3)
    asked = words.parse_args()
    machine.raise_descriptor_limit()
    for name, measure in PARTS.items():
        if asked.only in (None, name):
            print("\n".join([*measure(asked), "", conditions(asked), ""]))


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"python.py: {error}")
