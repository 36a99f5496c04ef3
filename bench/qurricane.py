#!/usr/bin/env python3
"""Qurricane's own benchmark, again: `ab -n 1000` with 1,000 and with 30 clients at once, without
keep-alive, against an echo of 19 bytes.

  bench/qurricane.py                  15 rounds; writes docs/results/qurricane.md
  bench/qurricane.py --rounds 3       fewer; into target/bench only

Unlike then, every server answers the same: 200 and 19 bytes, which is checked before and by every
run of ab. Needs Python's standard library, cargo, ab, node and a JDK; whoever is missing is left
out, and the report says so.
"""

import argparse
import dataclasses
import http.client
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine
from machine import BUILD, HERE, ROOT, BenchError, pinned, say

REQUESTS = 1000
CLIENTS = [1000, 30]
BODY_BYTES = 19
ROUNDS = 15  # as in the original
WARM_UP_RUNS = 8  # by then the just-in-time compilers have done most of their work
READY_SECONDS = 20
RUN_SECONDS_MAX = 60
REPORT = ROOT / "docs" / "results" / "qurricane.md"


@dataclasses.dataclass
class Peer:
    """One server, and the command that starts it on a port."""

    name: str
    command: list[str]

    def at(self, port: int) -> list[str]:
        return [word.format(port=port) for word in self.command]


@dataclasses.dataclass
class Run:
    """What one run of ab measured."""

    per_second: float
    mean_ms: float
    median_ms: float
    max_ms: float
    cpu_us: float  # of the server, for each request


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, metavar="N", default=ROUNDS)
    rounds = parser.parse_args().rounds
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are ended on the way
    try:
        machine.raise_descriptor_limit()
        machine.install_missing(["ab", "taskset"])
        peers, left_out = prepare()
        runs = measure(peers, rounds)
    except BenchError as error:
        say(f"bench: {error}")
        return 1
    text = report(peers, runs, left_out, rounds)
    target = REPORT if rounds >= ROUNDS else BUILD / REPORT.name
    target.write_text(text)
    say(f"written: {target}")
    print(text)
    return 0


def prepare() -> tuple[list[Peer], list[str]]:
    """Builds what has to be built. Returns who takes part, and who does not and why."""
    BUILD.mkdir(parents=True, exist_ok=True)
    build = ["cargo", "build", "--quiet", "--release", "-p", "gustnado", "--example", "echo"]
    machine.run_build(build)
    echo = str(machine.TARGET / "release" / "examples" / "echo")
    peers = [
        Peer("Gustnado, io_uring", [echo, "127.0.0.1:{port}", "uring"]),
        Peer("Gustnado, epoll", [echo, "127.0.0.1:{port}", "epoll"]),
    ]
    left_out = []
    if shutil.which("node"):
        peers.append(Peer("Node", ["node", str(HERE / "peers" / "echo.js"), "{port}"]))
    else:
        left_out.append("Node: `node` is not installed")
    if shutil.which("javac") and shutil.which("java"):
        machine.run_build(["javac", "-d", str(BUILD), str(HERE / "peers" / "Echo.java")])
        nodelay = "-Dsun.net.httpserver.nodelay=true"
        peers.append(Peer("Java (JDK server)", ["java", nodelay, "-cp", str(BUILD), "Echo",
                                                "{port}"]))
    else:
        left_out.append("Java: no JDK is installed")
    return peers, left_out


class Server:
    """A peer that runs on the server's CPU, and is ended when the block ends."""

    def __init__(self, peer: Peer):
        self.peer = peer
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [*pinned(machine.SERVER_CPU), *peer.at(self.port)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def __enter__(self) -> "Server":
        until = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.check()
                return self
            except OSError as error:
                if time.monotonic() > until or self.process.poll() is not None:
                    self.__exit__()
                    raise BenchError(f"{self.peer.name} does not answer: {error}") from error
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def check(self) -> None:
        """Its answer must be what all give."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        link.request("GET", "/echo")
        answer = link.getresponse()
        body = answer.read()
        link.close()
        if (answer.status, len(body)) != (200, BODY_BYTES):
            raise BenchError(f"{self.peer.name}: {answer.status} and {len(body)} bytes")

    def cpu_seconds(self) -> float:
        """CPU time so far of all its threads, by the scheduler's account in nanoseconds."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def run(self, clients: int) -> Run:
        """Runs ab once."""
        url = f"http://127.0.0.1:{self.port}/echo"
        command = ["ab", "-q", "-n", str(REQUESTS), "-c", str(clients), url]
        before = self.cpu_seconds()
        done = subprocess.run([*pinned(machine.LOAD_CPU), *command], capture_output=True,
                              text=True, timeout=RUN_SECONDS_MAX, stdin=subprocess.DEVNULL)
        cpu_us = (self.cpu_seconds() - before) / REQUESTS * 1e6
        if done.returncode:
            raise BenchError(f"{self.peer.name}: ab failed: {done.stderr.strip()[-200:]}")
        return read(self.peer.name, done.stdout, cpu_us)


def read(name: str, text: str, cpu_us: float) -> Run:
    """What ab says; everything must have been answered, with 2xx and 19 bytes."""
    def number(pattern: str) -> float:
        found = re.search(pattern, text)
        if found is None:
            raise BenchError(f"{name}: ab did not say {pattern!r}")
        return float(found.group(1))

    complete = number(r"Complete requests:\s+(\d+)")
    failed = number(r"Failed requests:\s+(\d+)")
    length = number(r"Document Length:\s+(\d+)")
    body = number(r"HTML transferred:\s+(\d+)")
    others = re.search(r"Non-2xx responses:\s+(\d+)", text)
    if (complete, failed, length, body) != (REQUESTS, 0, BODY_BYTES, REQUESTS * BODY_BYTES) \
            or others:
        raise BenchError(f"{name}: not all of ab's requests got 200 and 19 bytes:\n{text}")
    return Run(
        per_second=number(r"Requests per second:\s+([\d.]+)"),
        mean_ms=number(r"Total:\s+\d+\s+(\d+)"),
        median_ms=number(r"\n\s+50%\s+(\d+)"),
        max_ms=number(r"\n\s+100%\s+(\d+)"),
        cpu_us=cpu_us,
    )


def measure(peers: list[Peer], rounds: int) -> dict[tuple[str, int], list[Run]]:
    """All rounds, interleaved: a slow minute of the machine hits everybody."""
    runs: dict[tuple[str, int], list[Run]] = {}
    servers: list[Server] = []
    try:
        for peer in peers:
            servers.append(Server(peer).__enter__())
            say(f"{peer.name}: warming up")
            for _ in range(WARM_UP_RUNS):
                for clients in CLIENTS:
                    servers[-1].run(clients)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for clients in CLIENTS:
                for server in servers:
                    found = runs.setdefault((server.peer.name, clients), [])
                    found.append(server.run(clients))
    finally:
        for server in servers:
            server.__exit__()
    return runs


def report(peers: list[Peer], runs: dict[tuple[str, int], list[Run]], left_out: list[str],
           rounds: int) -> str:
    """The page."""
    about = machine.describe()
    lines = [
        "# Qurricane's benchmark, again",
        "",
        f"`ab -n {REQUESTS} -c {CLIENTS[0]}` and `-c {CLIENTS[1]}`, a connection for each request,"
        f" against an echo of {BODY_BYTES} bytes.",
        f"Made by `bench/qurricane.py`, {rounds} rounds, interleaved, after {WARM_UP_RUNS} runs of"
        " each that do not count. Server on CPU"
        f" {machine.SERVER_CPU}, ab on CPU {machine.LOAD_CPU}.",
        "",
        "Every answer was 200 with 19 bytes, or the run would have failed. (In Qurricane's own"
        " table both peers",
        "answered something else than 2xx to all 1,000 requests, so they did other work.)",
        "",
        "A run of ab has only 1,000 requests, that is some tenths of a second, and ab itself often"
        " sets the rate:",
        "it needs more CPU for a request than the faster servers do. The server's CPU time per"
        " request is the figure",
        "that does not depend on it.",
    ]
    for clients in CLIENTS:
        lines += ["", f"## {clients:,} clients at once", ""]
        lines.append("| server | requests/s, best | median (worst) | mean ms | median ms | max ms |"
                     " server CPU, us per request: median (best to worst) |")
        lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        lines += [row(peer.name, runs[peer.name, clients]) for peer in peers]
    lines += ["", "The milliseconds are medians over the rounds of what ab says: the mean, the"
              " median and the slowest request."]
    if left_out:
        lines += ["", "Not there: " + "; ".join(left_out) + "."]
    versions = {**about["versions"],
                "node": machine.first_line(["node", "--version"]),
                "java": machine.first_line(["java", "-version"])}
    wanted = [versions[name] for name in ["rustc", "ab", "node", "java"] if versions[name]]
    lines += ["", "## Where", "",
              f"Commit {about['commit']}, {about['date']}. {about['cpus']}, Linux"
              f" {about['kernel']}. {'; '.join(wanted)}.", ""]
    return "\n".join(lines)


def row(name: str, runs: list[Run]) -> str:
    rates = [run.per_second for run in runs]
    cpu = [run.cpu_us for run in runs]
    middle = statistics.median
    cells = [
        name,
        f"{max(rates):,.0f}",
        f"{middle(rates):,.0f} ({min(rates):,.0f})",
        f"{middle(run.mean_ms for run in runs):.0f}",
        f"{middle(run.median_ms for run in runs):.0f}",
        f"{middle(run.max_ms for run in runs):.0f}",
        f"{middle(cpu):.1f} ({min(cpu):.1f} to {max(cpu):.1f})",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
