#!/usr/bin/env python3
"""Folders that are large, and files that are: what contests/hosting.toml cannot measure.

  bench/hosting.py                        all of it: some ten minutes, 2 GB below target/bench
  bench/hosting.py listing hash           these two only
  bench/hosting.py --quick                fewer files and rounds: to see that it works

  listing   a folder of 10,000 entries: time to the first byte, and memory above idle
  million   random files of 1,000,000: memory, and CPU for each request next to nginx
  hash      a file of 8 MiB whose tag is made of its bytes: the first request next to one without

The server has one CPU and the client the other. Contenders take turns in every round. Figures are
medians, with the least and the greatest. Ends with 1 where a figure is not reached. Needs Python's
standard library, nginx and a release build of the command.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import contenders
import machine
import tomllib
from contenders import HOST
from machine import BUILD, BenchError, say

ENTRIES = 10_000
FILES = 1_000_000
FILES_QUICK = 20_000
FILES_OF_FOLDER = 1_000
# Names of one file: as many inodes as a kernel holds without pushing anything out.
LINKS = 50
SMALL_BYTES = 1_024
# What `gustnado bench --targets` takes.
TARGETS = 100_000
TARGETS_QUICK = 10_000
CACHE_BYTES = 32 << 20
LARGE_BYTES = 8 << 20
IOS = ["epoll", "uring"]

NAMES_MS_MAX = 10
SORTED_MS_MAX = 30
LISTING_BYTES_MAX = 3 << 20
MILLION_CPU_MAX = 0.8
# Beyond the cache: what a server holds once it has served files, and the allocator's share.
MILLION_BYTES_SLACK = 6 << 20
# A difference that the times of one request show by themselves.
HASH_FACTOR_MAX = 1.05


@dataclass
class Table:
    """Rows of a table in Markdown, and the figures that were to be reached."""

    title: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def judge(self, what: str, found: float, most: float, unit: str = "") -> None:
        if found > most:
            self.missed.append(f"{self.title}: {what}: {found:.3g}{unit}, wanted {most:.3g}{unit}")

    def show(self) -> str:
        lines = [f"## {self.title}", "", "| " + " | ".join(self.heads) + " |",
                 "| --- " + "| ---: " * (len(self.heads) - 1) + "|"]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in self.rows]) + "\n"


def spread(values: list[float], scale: float = 1, unit: str = "") -> str:
    """The median, with the least and the greatest."""
    low, middle, high = (value * scale for value in
                         (min(values), statistics.median(values), max(values)))
    return f"{middle:.3g}{unit} ({low:.3g} to {high:.3g})"


class Running:
    """A server that runs, on its own CPU. It is ended when the context ends."""

    def __init__(self, name: str, command: Callable[[int], list[str]]):
        self.name, self.port = name, contenders.free_port()
        self.log = open(BUILD / f"hosting-{name}.log", "w+b")
        self.process = subprocess.Popen(
            [*machine.pinned(machine.SERVER_CPU), *command(self.port)], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, env=contenders.plain_environment())

    def __enter__(self) -> "Running":
        until = time.monotonic() + contenders.READY_SECONDS_MAX
        while True:
            try:
                self.connect().close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.__exit__()
                    raise BenchError(f"{self.name} does not listen: see {self.log.name}") from None
                time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        pids = self.pids()
        contenders.send_signal(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(contenders.STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            for pid in pids:
                contenders.send_signal(pid, signal.SIGKILL)
            self.process.wait(5)
        self.log.close()

    def connect(self) -> socket.socket:
        link = socket.create_connection((HOST, self.port), timeout=60)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def pids(self) -> list[int]:
        return contenders.tree(self.process.pid) if self.process.poll() is None else []

    def cpu_seconds(self) -> float:
        return contenders.cpu_seconds(self.pids())

    def rss_bytes(self) -> int:
        return contenders.rss_bytes(self.pids())

    def peak_bytes(self) -> int:
        """The greatest resident memory since `forget_peak`."""
        total = 0
        for pid in self.pids():
            text = Path(f"/proc/{pid}/status").read_text()
            total += int(text.split("VmHWM:")[1].split()[0]) << 10
        return total

    def forget_peak(self) -> None:
        for pid in self.pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def gustnado(name: str, folder: Path, *more: str) -> Running:
    """Gustnado on the backend that its name begins with."""
    def command(port: int) -> list[str]:
        words = [machine.gustnado(), "serve", str(folder), "--host", HOST, "--port", str(port)]
        return [*words, "--workers", "1", "--io", name.split()[0], "--quiet", *more]

    return Running(f"gustnado-{name.replace(' ', '-')}", command)


def nginx(folder: Path, open_files: int) -> Running:
    """The preset of the contests, with a cache of so many open files."""
    work = BUILD / "hosting-nginx"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    def command(port: int) -> list[str]:
        text = tomllib.loads(contenders.NGINX_PRESET.read_text())["files"]["nginx.conf"]
        text = text.replace("max=1000 ", f"max={open_files} ")
        words = {"user": "root" if os.geteuid() == 0 else "nobody", "cpus": 1,
                 "descriptors": contenders.NGINX_DESCRIPTORS, "work": work, "port": port,
                 "root": folder}
        for word, meaning in words.items():
            text = text.replace("{" + word + "}", str(meaning))
        (work / "nginx.conf").write_text("daemon off;\n" + text)
        return ["nginx", "-p", str(work), "-c", str(work / "nginx.conf"),
                "-e", str(work / "error.log")]

    return Running("nginx", command)


def request(link: socket.socket, target: str) -> tuple[float, float, int]:
    """Seconds to the first byte of a response's content and to its last, and its bytes."""
    begun = time.perf_counter()
    link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    data = b""
    while len(data.partition(b"\r\n\r\n")[2]) == 0:
        data += more(link)
    first = time.perf_counter() - begun
    head, body = data.split(b"\r\n\r\n", 1)
    if not head.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"{target} is answered by {head[:40]!r}")
    fields = head.lower()
    if b"\r\ntransfer-encoding: chunked" in fields:
        length, end = len(body), body[-7:]
        while not end.endswith(b"\r\n0\r\n\r\n"):
            piece = more(link)
            length, end = length + len(piece), (end + piece)[-7:]
        return first, time.perf_counter() - begun, length
    wanted = int(fields.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0])
    length = len(body)
    while length < wanted:
        length += len(more(link))
    return first, time.perf_counter() - begun, length


def more(link: socket.socket) -> bytes:
    piece = link.recv(1 << 20)
    if not piece:
        raise BenchError("the server has closed within a response")
    return piece


@contextlib.contextmanager
def folder_of(name: str) -> Iterator[Path]:
    """An empty folder that is removed in the end."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- Listings.

TARGETS_OF_LISTING = {
    "names": ("/?sort=name", NAMES_MS_MAX),
    "by size": ("/?sort=size", SORTED_MS_MAX),
    "by date": ("/?sort=date", SORTED_MS_MAX),
    "JSON": ("/?format=json", SORTED_MS_MAX),
}


def listing(chosen: argparse.Namespace) -> Table:
    table = Table(f"A listing of {ENTRIES:,} entries",
                  ["list", "io", "first byte, ms", "last byte, ms", "above idle, MiB"])
    rounds = 5 if chosen.quick else 25
    with folder_of("hosting-entries") as folder:
        for number in range(ENTRIES):
            (folder / f"{number * 7919 % ENTRIES:05}-entry.txt").write_bytes(b"x" * (number % 997))
        for io in IOS:
            with gustnado(f"{io} listing", folder, "--listing=on") as server:
                with server.connect() as link:
                    request(link, "/00007-entry.txt")
                    for name, (target, first_ms_max) in TARGETS_OF_LISTING.items():
                        time.sleep(0.2)
                        idle = server.rss_bytes()
                        server.forget_peak()
                        times = [request(link, target) for _ in range(rounds)]
                        above = server.peak_bytes() - idle
                        firsts = [first for first, _, _ in times]
                        lasts = [last for _, last, _ in times]
                        table.rows.append([name, io, spread(firsts, 1e3), spread(lasts, 1e3),
                                           f"{above / (1 << 20):.2f}"])
                        what = f"{name}, {io}"
                        first_ms = statistics.median(firsts) * 1e3
                        table.judge(f"first byte, {what}", first_ms, first_ms_max, " ms")
                        table.judge(f"memory, {what}", above / 1e6, LISTING_BYTES_MAX / 1e6, " MB")
    return table


# --- A million files.

def name_of(number: int) -> str:
    return f"d{number // FILES_OF_FOLDER:04}/{number * 2_654_435_761 % (1 << 32):08x}.txt"


def make_files(folder: Path, count: int) -> None:
    """Files of 1 KiB in folders of a thousand, of which each has fifty names."""
    say(f"making {count:,} files")
    first = folder
    for number in range(count):
        path = folder / name_of(number)
        if number % FILES_OF_FOLDER == 0:
            path.parent.mkdir()
        # The names of a file are in several folders, so that neighbours are files of their own.
        if number % (LINKS * FILES_OF_FOLDER) < FILES_OF_FOLDER:
            path.write_bytes(f"{number:08}".encode().ljust(SMALL_BYTES, b"."))
            continue
        first = folder / name_of(number - number % (LINKS * FILES_OF_FOLDER)
                                 + number % FILES_OF_FOLDER)
        os.link(first, path)


def random_load(server: Running, numbers: list[int]) -> tuple[float, int]:
    """Requests these files, each once. Returns CPU seconds of the server and the requests."""
    urls = BUILD / "hosting-urls.txt"
    lines = (f"http://{HOST}:{server.port}/{name_of(number)}\n" for number in numbers)
    urls.write_text("".join(lines))
    words = [machine.gustnado(), "bench", "--targets", str(urls), "-c", "32", "-t", "1",
             "-n", str(len(numbers)), "--json"]
    before = server.cpu_seconds()
    done = subprocess.run([*machine.pinned(machine.LOAD_CPU), *words], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=600)
    used = server.cpu_seconds() - before
    if done.returncode:
        raise BenchError(f"the load has failed: {done.stderr.strip()[-300:]}")
    outcome = json.loads(done.stdout[done.stdout.index("{"):])
    failed = sum(outcome["errors"].values())
    if failed or outcome["requests"] != len(numbers):
        raise BenchError(f"{server.name}: {outcome['requests']} responses, {failed} errors")
    return used, outcome["requests"]


def million(chosen: argparse.Namespace) -> Table:
    count = chosen.files or (FILES_QUICK if chosen.quick else FILES)
    targets, rounds = (TARGETS_QUICK, 2) if chosen.quick else (TARGETS, chosen.rounds)
    targets = min(targets, count)
    table = Table(f"Random reads of {count:,} files, {rounds} times {targets:,}",
                  ["server", "CPU, µs per request", "of nginx", "memory at rest, MiB",
                   "afterwards, MiB"])
    dice = random.Random(1)
    cost: dict[str, list[float]] = {}
    with folder_of("hosting-million") as folder:
        make_files(folder, count)
        with contextlib.ExitStack() as stack:
            cache = ["--cache-bytes", str(CACHE_BYTES)]
            servers = [gustnado(f"{io} million", folder, *cache) for io in IOS]
            open_files = min(contenders.NGINX_DESCRIPTORS // 2, count)
            servers = [stack.enter_context(one) for one in [*servers, nginx(folder, open_files)]]
            rest = {one.name: one.rss_bytes() for one in servers}
            for turn in range(rounds):
                numbers = dice.sample(range(count), targets)
                # Whoever comes first would find the names for the others.
                for server in servers[turn % 3:] + servers[:turn % 3]:
                    if turn == 0:
                        random_load(server, dice.sample(range(count), targets))
                    used, served = random_load(server, numbers)
                    cost.setdefault(server.name, []).append(used / served * 1e6)
                say(f"round {turn + 1} of {rounds}: " + ", ".join(
                    f"{name} {found[-1]:.2f} µs" for name, found in cost.items()))
            after = {one.name: one.peak_bytes() for one in servers}
    for name, found in cost.items():
        ratios = [mine / theirs for mine, theirs in zip(found, cost["nginx"], strict=True)]
        mib = [f"{of[name] / (1 << 20):.1f}" for of in (rest, after)]
        table.rows.append([name, spread(found), spread(ratios), *mib])
        if name != "nginx":
            ratio = statistics.geometric_mean(ratios)
            table.judge(f"CPU of {name} as a factor of nginx's", ratio, MILLION_CPU_MAX)
            most = rest[name] + CACHE_BYTES + MILLION_BYTES_SLACK
            table.judge(f"memory of {name}", after[name] / 1e6, most / 1e6, " MB")
    return table


# --- The hash of a large file.

def first_requests(folder: Path, io: str, files: int) -> dict[str, list[tuple[float, float]]]:
    """The first request of each file, by a server that hashes it and by one that does not."""
    found: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    with gustnado(f"{io} hashing", folder) as hashing, \
            gustnado(f"{io} plain", folder, "--hash-bytes-max", "off") as plain:
        servers = {"with": hashing, "without": plain}
        links = {name: server.connect() for name, server in servers.items()}
        for link in links.values():
            request(link, "/warm.bin")
        for number in range(files):
            for name in list(links)[::1 if number % 2 else -1]:
                first, last, length = request(links[name], f"/{number}.bin")
                if length != LARGE_BYTES:
                    raise BenchError(f"{length} bytes came of {LARGE_BYTES}")
                found[name].append((first, last))
                # The hash of the file before is not to be measured with the next one.
                time.sleep(0.1)
        for link in links.values():
            link.close()
    return found


def hashed(chosen: argparse.Namespace) -> Table:
    table = Table("The first request of a file of 8 MiB",
                  ["tag", "io", "first byte, ms", "last byte, ms"])
    files = 5 if chosen.quick else 30
    with folder_of("hosting-large") as folder:
        for name in ["warm", *map(str, range(files))]:
            (folder / f"{name}.bin").write_bytes(os.urandom(LARGE_BYTES))
        for io in IOS:
            found = first_requests(folder, io, files)
            for name, words in [("with", "of its bytes"), ("without", "of its attributes")]:
                firsts, lasts = zip(*found[name], strict=True)
                table.rows.append([words, io, spread(firsts, 1e3), spread(lasts, 1e3)])
            for place, what in enumerate(["first", "last"]):
                medians = [statistics.median(times[place] for times in found[name])
                           for name in ("with", "without")]
                factor = medians[0] / medians[1]
                table.judge(f"time to the {what} byte, {io}, as a factor of the time without",
                            factor, HASH_FACTOR_MAX)
    return table


PARTS = {"listing": listing, "million": million, "hash": hashed}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small; judges nothing")
    parser.add_argument("--files", type=int, help=f"in place of {FILES:,} files")
    parser.add_argument("--rounds", type=int, default=10, help="of the million files")
    chosen = parser.parse_args()
    for name in chosen.parts:
        if name not in PARTS:
            parser.error(f"no part {name}; there are {', '.join(PARTS)}")
    if chosen.files is not None and chosen.files < FILES_OF_FOLDER:
        parser.error(f"--files: expected {FILES_OF_FOLDER} or more, found {chosen.files}")
    return chosen


def main() -> int:
    chosen = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that folders are removed
    machine.raise_descriptor_limit()
    # The client: on the server's CPU it would be measured with it.
    os.sched_setaffinity(0, {int(machine.LOAD_CPU)})
    BUILD.mkdir(parents=True, exist_ok=True)
    if not Path(machine.gustnado()).exists():
        say("bench: no release build; run `cargo build --release -p gustnado-cli`")
        return 1
    missed = []
    try:
        for name in chosen.parts or PARTS:
            table = PARTS[name](chosen)
            print(table.show(), flush=True)
            missed += table.missed
    except BenchError as error:
        say(f"bench: {error}")
        return 1
    for line in missed:
        say(f"not reached: {line}")
    return 1 if missed and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main())
