#!/usr/bin/env python3
"""The same axum app on Gustnado and on axum's own server: server CPU per request, side by side.

    bench/axum/compare.py [--rounds N] [--seconds N] [--write]

Each server has one thread on CPU 0, the generator is on CPU 1. The rounds are interleaved. With
--write the tables go to docs/results/axum.md, else they are printed.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import load  # noqa: E402
import machine  # noqa: E402
import measure  # noqa: E402
from contenders import HOST  # noqa: E402
from machine import BenchError, say  # noqa: E402

CONNECTIONS = 64
SERVERS = {"gustnado-epoll": "epoll", "gustnado-uring": "uring", "axum::serve": "axum"}
OWN = "axum::serve"
# what is asked for -> its path, wrk's script, and what must be answered
WORKS = {
    "`GET /`: 13 bytes of text": ("/", "", "Hello, World!"),
    "`GET /user/{id}`: a path extractor": ("/user/7", "", "user 7"),
    "`POST /echo`: JSON in, JSON out": ("/echo", "axum/post.lua", '{"id":7,"name":"Anna"}'),
}
REPORT = machine.ROOT / "docs" / "results" / "axum.md"


class Running:
    """A server that was started, pinned to its CPU."""

    def __init__(self, binary: Path, kind: str):
        command = [*machine.pinned(machine.SERVER_CPU), str(binary), kind, "1"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline().strip()
        if not line.isdigit():
            raise BenchError(f"{kind} did not start: {self.process.stderr.read().strip()}")
        self.port = int(line)
        if kind == "uring" and "io_uring" not in self.process.stderr.readline():
            raise BenchError("io_uring is not to be had here")

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, ended ones included."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / machine.TICKS_PER_SECOND

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/results/axum.md")
    chosen = parser.parse_args()
    try:
        text = compare(chosen)
    except BenchError as error:
        say(f"error: {error}")
        return 1
    if chosen.write:
        REPORT.write_text(text)
    else:
        print(text)
    return 0


def compare(chosen: argparse.Namespace) -> str:
    manifest = str(HERE / "Cargo.toml")
    machine.run_build(["cargo", "build", "--quiet", "--release", "--manifest-path", manifest,
                       "--target-dir", str(machine.TARGET / "axum")])
    binary = machine.TARGET / "axum" / "release" / "gustnado-bench-axum"
    running = {}
    parts = [head(chosen)]
    try:
        for name, kind in SERVERS.items():
            running[name] = Running(binary, kind)
        for title, (path, script, expected) in WORKS.items():
            for name, server in running.items():
                check(name, server, path, script, expected)
            parts.append(table(title, rounds(running, path, script, chosen)))
    finally:
        for server in running.values():
            server.stop()
    return "\n".join(parts)


def check(name: str, server: Running, path: str, script: str, expected: str) -> None:
    """Fails where a server answers otherwise than the others."""
    words = ["curl", "-sS", f"http://{HOST}:{server.port}{path}"]
    if script:
        words += ["-H", "Content-Type: application/json", "-d", expected]
    found = subprocess.run(words, capture_output=True, text=True, timeout=10).stdout
    if found != expected:
        raise BenchError(f"{name} answers {found!r} to {path}, expected {expected!r}")


def rounds(
    running: dict[str, Running], path: str, script: str, chosen: argparse.Namespace
) -> dict[str, list[measure.Sample]]:
    samples = {name: [] for name in running}
    asked = SimpleNamespace(drive=load.Wrk(CONNECTIONS, script), work=SimpleNamespace(path=path))
    for turn in range(chosen.rounds + 1):
        for name, server in running.items():
            sample = measure.run_once(server, asked, chosen.seconds)
            if turn == 0:
                continue  # the first round warms up
            samples[name].append(sample)
            say(f"  {path} round {turn} {name}: {sample.cpu_us:.2f} us")
    return samples


def head(chosen: argparse.Namespace) -> str:
    about = machine.describe()
    versions = ", ".join(version(name) for name in ["axum", "hyper", "tokio"])
    return f"""# An axum app on Gustnado

Made by `bench/axum/compare.py --write`, which has the app and both servers beside it.

The same `axum::Router` is served by `gustnado::tower` and by `axum::serve` on tokio's multi-thread
runtime. Each has one worker thread, on CPU 0; `wrk -t1 -c{CONNECTIONS}` is on CPU 1. The figure is
CPU time of all of a server's threads, in user space and in the kernel, per request. There are
{chosen.rounds} interleaved rounds of {chosen.seconds:g} seconds after one that does not count; the
lines show the median and the spread. The ratio is that to `axum::serve`, with its smallest and
largest value within one round.

Commit {about["commit"]}; {versions}; {machine.first_line(["rustc", "--version"])};
Linux {machine.first_line(["uname", "-r"])}; {about["cpus"]}.
"""


def version(name: str) -> str:
    lock = (HERE / "Cargo.lock").read_text()
    return name + " " + lock.split(f'name = "{name}"\nversion = "', 1)[1].split('"', 1)[0]


def table(title: str, samples: dict[str, list[measure.Sample]]) -> str:
    lines = [
        f"## {title}\n",
        "| server | CPU-us per request | / axum::serve | requests/s | p50 us | p99 us | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, taken in samples.items():
        cpu = sorted(sample.cpu_us for sample in taken)
        found, low, high = measure.ratio(samples, name, OWN)
        middle = {
            key: measure.median_or_none([getattr(sample, key) for sample in taken])
            for key in ("cpu_us", "per_second", "p50_us", "p99_us")
        }
        failed = sum(sample.failed for sample in taken)
        lines.append(
            f"| {name} | {middle['cpu_us']:.2f} ({cpu[0]:.2f}-{cpu[-1]:.2f}) "
            f"| {found:.2f} ({low:.2f}-{high:.2f}) | {middle['per_second']:,.0f} "
            f"| {middle['p50_us']:,.0f} | {middle['p99_us']:,.0f} | {failed} |"
        )
    noise = measure.noise([sample for taken in samples.values() for sample in taken])
    lines.append(
        f"\nNoise, in % of one CPU: {noise['stolen_median']:.1f} stolen by the host "
        f"(worst run {noise['stolen_worst']:.1f}), {noise['other_median']:.1f} by other processes "
        f"(worst run {noise['other_worst']:.1f}).\n"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
