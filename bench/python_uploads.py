#!/usr/bin/env python3
"""What receiving a body costs a Python application, for 100 KB to 20 MB on 32 connections,
compared with granian. (What it costs the server is contests/uploads.toml.)

  bench/python_uploads.py --python VENV/bin/python            7 rounds each (some four minutes)
  bench/python_uploads.py --python VENV/bin/python --report   kept in docs/results/python-uploads.md

VENV has this package and granian: pip install ./python granian
The server has the first CPU, the client the second. Ends with 1 where a goal is missed.
"""

import argparse
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import machine
from contenders import HOST, free_port, tree
from machine import BUILD, HERE, ROOT, BenchError, say

REPORT = ROOT / "docs/results/python-uploads.md"
CONNECTIONS = 32
# Bytes of a body, and how many seconds a round of them takes.
SIZES = {100_000: 1, 1_000_000: 1, 2_000_000: 1, 20_000_000: 3}
# Who is measured in each scenario, the first of them the one to compare with; what is to be
# reached, as (which part of whose figure at most).
PYTHON = [
    (f"{interface.upper()} application", "/", [f"granian-{interface}", f"python-{interface}"],
     [(0.5, f"granian-{interface}")])
    for interface in ("asgi", "wsgi")
]


def command(name: str, port: int, python: str) -> list[str]:
    """The command line of a contender."""
    server, _, interface = name.partition("-")
    application = f"hellos:upload_{interface}"
    if server == "granian":
        return [python, "-m", "granian", "--host", HOST, "--port", str(port), "--no-ws",
                "--interface", interface, "--working-dir", str(HERE / "python"), application]
    return [python, "-m", "gustnado", "run", "--app-dir", str(HERE / "python"),
            "--port", str(port), application]


class Contender:
    """A running server. Use it as a context."""

    def __init__(self, name: str, python: str = ""):
        self.name, self.port = name, free_port()
        self.process = subprocess.Popen(
            [*machine.pinned(machine.SERVER_CPU), *command(name, self.port, python)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "Contender":
        until = time.monotonic() + 10
        while True:
            if self.process.poll() is not None or time.monotonic() > until:
                raise BenchError(f"{self.name} does not start")
            try:
                socket.create_connection((HOST, self.port)).close()
                return self
            except OSError:
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def cpu_seconds(self) -> float:
        total = 0
        for pid in tree(self.process.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def round(self, path: str, size: int, seconds: int) -> tuple[float, int]:
        """Microseconds of CPU per request, and how many there were."""
        client = [str(BUILD / "upload_client"), str(self.port), path, str(size),
                  str(CONNECTIONS), str(seconds)]
        before = self.cpu_seconds()
        said = subprocess.run([*machine.pinned(machine.LOAD_CPU), *client],
                              capture_output=True, text=True, timeout=seconds + 60).stdout.split()
        if not said or int(said[1]) == 0 or int(said[3]):
            raise BenchError(f"{self.name}, {size} bytes: {' '.join(said)}")
        return (self.cpu_seconds() - before) / int(said[1]) * 1e6, int(said[1])


def measure(scenario: tuple, rounds: int, python: str) -> tuple[list[str], list[str]]:
    """Interleaved rounds; the lines of the table, and what was not reached."""
    title, path, names, goals = scenario
    lines, missed = [], []
    contenders = [Contender(name, python) for name in names]
    try:
        for contender in contenders:
            contender.__enter__()
        for size, seconds in SIZES.items():
            found = {name: [] for name in names}
            for _ in range(rounds):
                for contender in contenders:
                    found[contender.name].append(contender.round(path, size, seconds))
            for name in names:
                lines.append(line(title, size, name, found, goals))
                print(lines[-1], flush=True)
            for goal, against in goals:
                for name in names:
                    if name == against or not name.startswith("python"):
                        continue
                    ratio = compared(found, name, against)[0]
                    if goal and ratio > goal:
                        missed.append(f"{size:,} bytes {title}: {name} {ratio:.2f} x {against}, "
                                      f"wanted {goal}")
    finally:
        for contender in contenders:
            contender.__exit__()
    return lines, missed


def line(title: str, size: int, name: str, found: dict, goals: list) -> str:
    cpu = [sample[0] for sample in found[name]]
    against = []
    for _, other in goals:
        middle, low, high = compared(found, name, other)
        against.append(f"{middle:.2f} ({low:.2f}-{high:.2f}) x {other}" if name != other else "")
    cells = [f"{size:,}", title, name, f"{statistics.median(cpu):.1f}",
             f"{min(cpu):.1f}-{max(cpu):.1f}", "; ".join(filter(None, against)),
             f"{sum(sample[1] for sample in found[name]):,}"]
    return "| " + " | ".join(cells) + " |"


def compared(found: dict, name: str, other: str) -> tuple[float, float, float]:
    """The median of the rounds' ratios, the smallest and the largest. A slow moment of the machine
    meets both sides of a round."""
    each = [ours[0] / theirs[0] for ours, theirs in zip(found[name], found[other])]
    return statistics.median(each), min(each), max(each)


def build() -> None:
    machine.install_missing(["gcc", "taskset"])
    BUILD.mkdir(parents=True, exist_ok=True)
    client = str(BUILD / "upload_client")
    machine.run_build(["gcc", "-O2", "-o", client, str(HERE / "upload_client.c")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", required=True, help="an interpreter with both packages")
    parser.add_argument("--report", action="store_true", help=f"keep it in {REPORT.name}")
    chosen = parser.parse_args()
    try:
        build()
        heading = "| body bytes | scenario | server | us | range | ratio | requests |"
        lines, missed = [heading, "| --- " * 7 + "|"], []
        print(*lines, sep="\n")
        for scenario in PYTHON:
            found, not_reached = measure(scenario, chosen.rounds, chosen.python)
            lines += found
            missed += not_reached
    except BenchError as error:
        say(f"python_uploads: {error}")
        return 1
    verdict = "Missed: " + "; ".join(missed) + "." if missed else "All goals are reached."
    print(verdict)
    if chosen.report:
        keep(lines, verdict, chosen.rounds)
    return 1 if missed else 0


def keep(lines: list[str], verdict: str, rounds: int) -> None:
    meta = machine.describe()
    text = f"""# What receiving a body costs a Python application

`bench/python_uploads.py --report`, {meta["date"]}, commit {meta["commit"]}, Linux {meta["kernel"]},
{meta["cpus"]}.

CPU-microseconds of the server per request, median and range of {rounds} interleaved rounds, on
{CONNECTIONS} connections over loopback. The application reads the body in pieces and responds with
its length. A ratio is the median of the rounds' ratios, with the smallest and the largest. Goal:
0.5 x granian.

{verdict}

"""
    REPORT.write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
