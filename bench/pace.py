#!/usr/bin/env python3
"""Shows that paced connections keep their pace, and that the others do not feel them.

  bench/pace.py                    1,000 connections at 8 KiB/s, 30 seconds (some 70 seconds in all)
  bench/pace.py --seconds 60

Starts crates/server/examples/paced_download.rs. Unpaced requests are sent at a steady rate
before, while and after the paced connections download. Writes docs/results/pace.{svg,md}.
Needs Python's standard library only.
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import time

import machine
from machine import BenchError, say

RATE = 8 << 10
TOLERANCE = 0.05
WINDOW_SECONDS = 5
SETTLE_SECONDS = 3
ALONE_SECONDS = 15
# The unpaced traffic: so many requests per second, spread evenly over so many connections.
ASKED_PER_SECOND = 400
ASKING_CONNECTIONS = 8
HOST = "127.0.0.1"
BINARY = machine.TARGET / "release" / "examples" / "paced_download"
PERCENTILES = (50, 90, 99, 99.9)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=1_000, metavar="N")
    parser.add_argument("--seconds", type=int, default=30, metavar="N", help="at least 10")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    chosen = parser.parse_args()
    if chosen.seconds < 2 * WINDOW_SECONDS:
        parser.error(f"--seconds {chosen.seconds}: at least {2 * WINDOW_SECONDS}")
    try:
        figures = measure(chosen.connections, chosen.seconds)
    except (BenchError, OSError) as error:
        say(f"bench: {error}")
        return 1
    place = machine.page("pace.md", figures, chosen.publish)
    machine.BUILD.mkdir(parents=True, exist_ok=True)
    (machine.BUILD / "pace.json").write_text(json.dumps(figures, indent=1) + "\n")
    place.write_text(page(figures))
    place.with_suffix(".svg").write_text(plot(figures))
    say(f"within 5 %: {figures['within']} of {figures['connections']}; see {place}")
    return 0 if figures["within"] == figures["connections"] else 1


def measure(connections: int, seconds: int) -> dict:
    machine.raise_descriptor_limit()
    build()
    port = free_port()
    command = [*machine.pinned(machine.SERVER_CPU), str(BINARY), f"{HOST}:{port}", str(RATE)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(0, {int(machine.LOAD_CPU)})
    try:
        first = server.stdout.readline()
        backend = first.removeprefix("over ").partition(";")[0]
        if not first.startswith("over "):
            raise BenchError(f"expected the example's backend, found {first!r}; see above")
        say(f"pace: unpaced requests alone, over {backend}")
        before = Traffic(port, ALONE_SECONDS).take()
        say(f"pace: the same beside {connections} downloads at {RATE} bytes per second")
        downloads = Downloads(port, connections)
        downloads.read_for(SETTLE_SECONDS)
        cpu_seconds = -process_seconds(server.pid)
        running = Traffic(port, seconds)
        marks = downloads.watch(seconds)
        cpu_seconds += process_seconds(server.pid)
        beside = running.take()
        downloads.close()
        say("pace: alone once more")
        after = Traffic(port, ALONE_SECONDS).take()
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    return account(connections, backend, marks, cpu_seconds, before, beside, after)


def build() -> None:
    command = ["cargo", "build", "--release", "--example", "paced_download"]
    if subprocess.run(command, cwd=machine.ROOT).returncode != 0:
        raise BenchError("the example could not be built; see what cargo says above")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def process_seconds(pid: int) -> float:
    """CPU time of all threads so far. (The command is `taskset`, which became the server.)"""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / machine.TICKS_PER_SECOND


class Downloads:
    """Paced connections, and how many bytes each has received."""

    def __init__(self, port: int, count: int):
        self.received, self.links = {}, {}
        self.poll = select.epoll()
        request = b"GET /slow HTTP/1.1\r\nHost: loopback\r\n\r\n"
        for _ in range(count):
            link = socket.create_connection((HOST, port))
            link.sendall(request)
            link.setblocking(False)
            self.links[link.fileno()] = link
            self.received[link.fileno()] = 0
            self.poll.register(link.fileno(), select.EPOLLIN)
        self.buffer = bytearray(1 << 16)

    def read_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for number, _ in self.poll.poll(left):
                count = self.links[number].recv_into(self.buffer)
                if count == 0:
                    raise BenchError("the server closed a connection that it should pace")
                self.received[number] += count

    def watch(self, seconds: int) -> list[tuple[float, list[int]]]:
        """When it was looked, and what each connection had received by then."""
        marks = [self.mark()]
        for _ in range(seconds // WINDOW_SECONDS):
            self.read_for(WINDOW_SECONDS)
            marks.append(self.mark())
        return marks

    def mark(self) -> tuple[float, list[int]]:
        return time.monotonic(), list(self.received.values())

    def close(self) -> None:
        for link in self.links.values():
            link.close()


class Traffic:
    """Unpaced requests, sent from a process of their own."""

    def __init__(self, port: int, seconds: float):
        self.results, child = multiprocessing.Pipe(duplex=False)
        work = (port, seconds, child)
        self.process = multiprocessing.Process(target=ask_steadily, args=work, daemon=True)
        self.process.start()
        child.close()

    def take(self) -> list[float]:
        """How long each answer took, in milliseconds."""
        try:
            times = self.results.recv()
        except EOFError:
            raise BenchError("the unpaced requests failed; see above") from None
        self.process.join()
        return times


def ask_steadily(port: int, seconds: float, results) -> None:
    """Each request is due at a time of its own, and its answer is timed from then: a server that
    stalls is not let off by requests that wait for it."""
    links = [socket.create_connection((HOST, port)) for _ in range(ASKING_CONNECTIONS)]
    for link in links:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = b"GET /hello HTTP/1.1\r\nHost: loopback\r\n\r\n"
    times, began = [], time.monotonic()
    for number in range(int(seconds * ASKED_PER_SECOND)):
        due = began + number / ASKED_PER_SECOND
        if (early := due - time.monotonic()) > 0:
            time.sleep(early)
            # The generator's own sleep is late by some 100 microseconds: not the server's doing.
            due = time.monotonic()
        link = links[number % ASKING_CONNECTIONS]
        link.sendall(request)
        answer = b""
        while not answer.endswith(b"Hello, world!"):
            piece = link.recv(4096)
            if not piece or not (answer or piece.startswith(b"HTTP/1.1 200 ")):
                raise BenchError(f"no good answer to an unpaced request: {piece[:40]!r}")
            answer += piece
        times.append((time.monotonic() - due) * 1000)
    results.send(times)


def account(connections, backend, marks, cpu_seconds, before, beside, after) -> dict:
    whole = rates(marks[0], marks[-1])
    windows = [rate for pair in itertools.pairwise(marks) for rate in rates(*pair)]
    seconds = marks[-1][0] - marks[0][0]
    about = machine.describe()
    return {
        "commit": about["commit"],
        "cpus": about["cpus"],
        "date": time.strftime("%Y-%m-%d"),
        "kernel": os.uname().release,
        "backend": backend,
        "connections": connections,
        "rate": RATE,
        "seconds": round(seconds, 2),
        "within": sum(abs(rate / RATE - 1) <= TOLERANCE for rate in whole),
        "rates": spread(whole),
        "rates_in_windows": spread(windows),
        "window_seconds": WINDOW_SECONDS,
        "histogram": histogram(whole),
        "server_cpu_share": round(cpu_seconds / seconds, 3),
        "asked_per_second": ASKED_PER_SECOND,
        "unpaced": {
            "alone": answers(before, ALONE_SECONDS),
            "beside the paced": answers(beside, seconds),
            "alone again": answers(after, ALONE_SECONDS),
        },
    }


def rates(first, last) -> list[float]:
    (began, earlier), (ended, later) = first, last
    return [(end - start) / (ended - began) for start, end in zip(earlier, later)]


def spread(values: list[float]) -> dict:
    values = sorted(values)
    return {
        "least": round(values[0], 1),
        "p1": round(values[len(values) // 100], 1),
        "median": round(statistics.median(values), 1),
        "p99": round(values[-1 - len(values) // 100], 1),
        "most": round(values[-1], 1),
    }


# Tenths of a percent off the rate, from -6 % to 6 %; what is further off counts at the edge.
EDGE = 60


def histogram(values: list[float]) -> list[int]:
    counts = [0] * (2 * EDGE + 1)
    for value in values:
        off = round((value / RATE - 1) * 1000)
        counts[max(-EDGE, min(EDGE, off)) + EDGE] += 1
    return counts


def answers(times: list[float], seconds: float) -> dict:
    times = sorted(times)
    percentile = {
        f"p{p:g}_ms": round(times[min(len(times) - 1, int(len(times) * p / 100))], 3)
        for p in PERCENTILES
    }
    steps = [round(times[int((len(times) - 1) * step / 200)], 4) for step in range(201)]
    rate = round(len(times) / seconds, 1)
    return {"answers": len(times), "per_second": rate, **percentile, "cdf_ms": steps}


def page(figures: dict) -> str:
    rates, windows = figures["rates"], figures["rates_in_windows"]
    count, rate = figures["connections"], figures["rate"]

    def row(name: str, values: dict) -> str:
        cells = [f"{values[key]:,.0f} ({values[key] / rate - 1:+.2%})" for key in values]
        return f"| {name} | " + " | ".join(cells) + " |"

    lines = [
        "# Pace",
        "",
        f"{count:,} connections download at {rate:,} bytes per second each, while others",
        "of the same server are not paced. **"
        f"{figures['within']:,} of {count:,} stay within 5 %** of the rate.",
        "",
        "![How far off each connection's rate is, and how fast unpaced responses are](pace.svg)",
        "",
        f"Measured on {figures['date']} at commit `{figures['commit']}`, {figures['cpus']},",
        f"Linux {figures['kernel']}, over {figures['backend']},",
        f"for {figures['seconds']:g} seconds. The server has one CPU, and uses",
        f"{figures['server_cpu_share']:.0%} of it for all of this. `bench/pace.py` measures it.",
        "",
        "## The paced connections",
        "",
        "Bytes per second, as the client receives them, head included.",
        "",
        "| over | least | 1 % | median | 99 % | most |",
        "| --- | --- | --- | --- | --- | --- |",
        row(f"the whole {figures['seconds']:.0f} s", rates),
        row(f"each {figures['window_seconds']} s of it", windows),
        "",
        "## The unpaced ones",
        "",
        f"{figures['asked_per_second']} small requests per second on {ASKING_CONNECTIONS} kept",
        "connections, each timed from the moment it was due. The generator shares its CPU with the",
        f"reader of the {count:,} downloads.",
        "",
        "| | responses per second | median | 90 % | 99 % | 99.9 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in figures["unpaced"].items():
        times = " | ".join(f"{found[f'p{p:g}_ms']:.3f} ms" for p in PERCENTILES)
        lines.append(f"| {name} | {found['per_second']} | {times} |")
    return "\n".join(lines) + "\n"


STYLE = """
 text { font: 13px system-ui, sans-serif; fill: #24292f }
 .title { font-weight: 600; font-size: 15px } .small { font-size: 11px; fill: #57606a }
 .axis { stroke: #8c959f; fill: none } .grid { stroke: #d0d7de; fill: none }
 .band { fill: #2da44e; opacity: .13 } .bar { fill: #0969da }
 .one { stroke: #0969da } .two { stroke: #d1570b } .three { stroke: #8250df }
 .line { fill: none; stroke-width: 2 } .three { stroke-dasharray: 4 3 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d }
  .bar { fill: #58a6ff } .band { fill: #3fb950; opacity: .18 }
  .one { stroke: #58a6ff } .two { stroke: #f0883e } .three { stroke: #bc8cff }
 }
"""


def plot(figures: dict) -> str:
    count = f"{figures['connections']:,}"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 400" role="img">',
        f"<title>{count} paced connections, and unpaced responses next to them</title>",
        f"<style>{STYLE}</style>",
        *rate_panel(figures, 60, 70, 380, 250),
        *answer_panel(figures, 530, 70, 360, 250),
        text(20, 388, f"commit {figures['commit']}, Linux {figures['kernel']}, "
             f"{figures['backend']}, one CPU for the server, {figures['seconds']:g} s", "small"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def line(x: float, y: float, dx: float, dy: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x:g} {y:g}l{dx:g} {dy:g}"/>'


def rate_panel(figures: dict, left: int, top: int, width: int, height: int) -> list[str]:
    counts = figures["histogram"]
    most = max(counts)
    step = width / len(counts)

    def place(tenths):
        return left + (tenths + EDGE + 0.5) * step

    title = f"{figures['within']:,} of {figures['connections']:,} connections within 5 % of 8 KiB/s"
    parts = [
        text(left - 40, top - 40, title, "title"),
        text(left - 40, top - 20, "connections by how far off their rate is", "small"),
        f'<rect class="band" x="{place(-50):g}" y="{top}" width="{100 * step:g}" '
        f'height="{height}"/>',
    ]
    for share in (0.5, 1):
        y = top + height * (1 - share * 0.95)
        parts += [line(left, y, width, 0, "grid"),
                  text(left - 6, y + 4, f"{most * share:.0f}", "small", "end")]
    for place_of, found in enumerate(counts):
        if found:
            tall = max(found / most * height * 0.95, 1)
            parts.append(f'<rect class="bar" x="{left + place_of * step:.2f}" '
                         f'y="{top + height - tall:.2f}" width="{step * 0.9:.2f}" '
                         f'height="{tall:.2f}"/>')
    parts.append(line(left, top + height, width, 0, "axis"))
    for percent in (-5, -2.5, 0, 2.5, 5):
        words = f"{percent:+g} %" if percent else "8 KiB/s"
        parts.append(text(place(percent * 10), top + height + 18, words, "small", "middle"))
    return parts


def answer_panel(figures: dict, left: int, top: int, width: int, height: int) -> list[str]:
    found = figures["unpaced"]
    kinds = dict(zip(found, ("one", "two", "three")))
    # From the quickest answer to the slowest of 99.5 %, by doublings.
    low = math.log2(min(one["cdf_ms"][0] for one in found.values()))
    high = math.log2(max(one["cdf_ms"][199] for one in found.values()))
    low, high = math.floor(low), math.ceil(high)

    def across(ms):
        return left + (min(max(math.log2(ms), low), high) - low) / (high - low) * width

    title = f"Unpaced responses, {figures['asked_per_second']} per second"
    parts = [
        text(left - 40, top - 40, title, "title"),
        text(left - 40, top - 20, "share of responses that took no longer", "small"),
    ]
    for share in (0, 0.5, 0.9, 1):
        y = top + height * (1 - share)
        parts += [line(left, y, width, 0, "axis" if share == 0 else "grid"),
                  text(left - 6, y + 4, f"{share:.0%}", "small", "end")]
    for power in range(low, high + 1):
        label = f"{2.0 ** power:.3g} ms"
        parts.append(text(across(2.0**power), top + height + 18, label, "small", "middle"))
    for place, (name, one) in enumerate(found.items()):
        points = " ".join(
            f"{across(ms):.1f},{top + height * (1 - share / 200):.1f}"
            for share, ms in enumerate(one["cdf_ms"][:200])
        )
        parts.append(f'<polyline class="line {kinds[name]}" points="{points}"/>')
        x, y = left + width - 190, top + height - 62 + place * 18
        parts += [f'<path class="line {kinds[name]}" d="M{x} {y - 4}h26"/>',
                  text(x + 32, y, f"{name}: p99 {one['p99_ms']:.2f} ms", "small")]
    return parts


if __name__ == "__main__":
    sys.exit(main())
