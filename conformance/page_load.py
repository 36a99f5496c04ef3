#!/usr/bin/env python3
"""How long Chromium takes for a page of 300 files over HTTP/2: from this server, and from h2o.

  conformance/page_load.py --server target/release/gustnado --rounds 15

The loads take turns, each in a browser of its own without a cache, so what else the machine does
meets both. A load is the time from the start of the navigation to the event `load`, as the page
itself reads it: the handshake is a part of it, the start of the browser is not. Only a quiet
machine tells anything. It prints a line for each server, and ends with 1 if ours, on epoll or on
io_uring, is the later one by the means and by more than `--tolerance`.
"""

import argparse
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import by_browser
import certificates
import h2_by_browser
import outcomes
import page
from h2_lab import Lab
from outcomes import Unmet, expect

H2O = """
user: {user}
num-threads: 1
tcp-fastopen: 0
listen:
  host: 127.0.0.1
  port: {port}
  ssl:
    certificate-file: {files}/p256.chain.pem
    key-file: {files}/p256.key
hosts:
  "localhost":
    paths:
      "/":
        file.dir: {files}/www
"""
LOADED = re.compile(r"loaded (\d+) by (\S+) in ([\d.]+) ms")


class Started:
    """A server that was started."""

    port: int
    process: subprocess.Popen

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class H2o(Started):
    """h2o with one thread, as ours has one worker."""

    def __init__(self, program: str, files: Path):
        self.port = free_port()
        conf = files / "h2o.conf"
        conf.write_text(H2O.format(files=files, port=self.port, user="root"))
        with open(files / "h2o.log", "wb") as log:
            self.process = subprocess.Popen([program, "-m", "worker", "-c", str(conf)], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
        command = ["curl", "--silent", "--cacert", str(files / "root.pem"), "--output", "/dev/null",
                   f"https://localhost:{self.port}/many.html"]
        deadline = time.monotonic() + 10
        while subprocess.run(command, timeout=10).returncode:
            expect(time.monotonic() < deadline, (files / "h2o.log").read_text())
            time.sleep(0.05)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def load(files: Path, port: int, key: str) -> float:
    """The milliseconds that one load takes."""
    profile = files / "chromium"
    shutil.rmtree(profile, ignore_errors=True)
    command = [*by_browser.begin(profile, "localhost", key), "--dump-dom",
               f"https://localhost:{port}/many.html"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    found = LOADED.search(text)
    expect(found and found[2] == "h2", f"it says {text[-300:]}")
    expect(int(found[1]) == h2_by_browser.FILES, f"{found[1]} files")
    return float(found[3])


def line(name: str, times: list[float]) -> str:
    quarters = statistics.quantiles(times, n=4)
    return (f"{name}: mean {statistics.mean(times):.1f} ms of {len(times)} loads, median "
            f"{statistics.median(times):.1f}, quartiles {quarters[0]:.1f} and {quarters[2]:.1f}, "
            f"least {min(times):.1f}")


class Ours(Started):
    """This server, with one worker and one of its interfaces to the kernel."""

    def __init__(self, program: Path, files: Path, io: str):
        self.port = free_port()
        words = ["serve", str(files / "www"), "--listen", f"https://127.0.0.1:{self.port}",
                 "--tls-cert", str(files / "p256.chain.pem"),
                 "--tls-key", str(files / "p256.key"), "--workers", "1", "--io", io]
        with open(files / f"{io}.log", "wb") as log:
            self.process = subprocess.Popen([str(program), *words], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)


def measure(asked: argparse.Namespace, files: Path) -> int:
    lab = Lab(asked.server.absolute(), certificates.make(files))
    h2_by_browser.make_page(files / "www")
    servers: dict[str, Started] = {}
    try:
        key = by_browser.key_of(lab, "p256")
        lab.kill()
        for io in ("epoll", "uring"):
            servers[f"gustnado-{io}"] = Ours(asked.server.absolute(), files, io)
        servers["h2o"] = H2o(asked.h2o, files)
        times: dict[str, list[float]] = {name: [] for name in servers}
        # The first load of each warms the files and the browser's own ones.
        for turn in range(asked.rounds + 1):
            for name in random.sample(list(servers), len(servers)):
                took = load(files, servers[name].port, key)
                times[name] += [took] if turn else []
    finally:
        lab.kill()
        for server in servers.values():
            server.kill()
    for name, taken in times.items():
        print(line(name, taken))
    theirs = statistics.mean(times.pop("h2o"))
    ratios = {name: statistics.mean(taken) / theirs for name, taken in times.items()}
    for name, ratio in ratios.items():
        print(f"{name} / h2o: {ratio:.3f}")
    return 0 if max(ratios.values()) <= 1 + asked.tolerance else 1


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, metavar="PATH")
    words.add_argument("--rounds", type=int, default=15)
    words.add_argument("--tolerance", type=float, default=0.03, help="a part of h2o's mean")
    newest = page.ROOT / "target" / "peers" / "bin" / "h2o"
    words.add_argument("--h2o", metavar="PATH", default=str(newest) if newest.exists() else "h2o",
                       help="the one that contests/h2o.sh builds, or else the system's")
    asked = words.parse_args()
    for name, there in (("h2o", shutil.which(asked.h2o)), ("chromium", by_browser.program())):
        if not there:
            print(f"skipped: {name} is not installed")
            return 0
    print(outcomes.first_line([asked.h2o, "--version"]), "|", by_browser.version())
    with tempfile.TemporaryDirectory(prefix="page-load-") as folder:
        try:
            return measure(asked, Path(folder))
        except Unmet as error:
            print(error)
            return 1


if __name__ == "__main__":
    sys.exit(main())
