"""wrk, and what it says in the end."""

import re
import subprocess
from dataclasses import dataclass

import machine
from contenders import HOST, Work
from machine import BenchError


@dataclass(frozen=True)
class Load:
    """What one run of a generator counted. Latencies are in microseconds."""

    requests: int
    failed: int
    per_second: float
    p50_us: float | None
    p99_us: float | None


@dataclass(frozen=True)
class Wrk:
    """Keep-alive load for a time."""

    connections: int

    def run(self, port: int, work: Work, seconds: float) -> Load:
        words = ["wrk", "-t1", f"-c{self.connections}", f"-d{max(1, round(seconds))}s", "--latency"]
        text = output([*words, f"http://{HOST}:{port}{work.path}"], seconds + 30)
        counts = re.search(r"(\d+) requests in", text)
        if not counts:
            raise BenchError("wrk says: " + " ".join(text.split())[:300])
        return Load(
            requests=int(counts[1]),
            failed=wrk_failures(text),
            per_second=float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]),
            p50_us=wrk_latency(text, "50%"),
            p99_us=wrk_latency(text, "99%"),
        )


def output(command: list[str], seconds: float) -> str:
    """Runs a generator on its own CPU; both of its outputs, as one text."""
    try:
        done = subprocess.run(
            [*machine.pinned(machine.LOAD_CPU), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{command[0]} did not end within {seconds:.0f} s") from error
    return done.stdout


def wrk_failures(text: str) -> int:
    failed = 0
    errors = re.search(r"Socket errors: (.*)", text)
    if errors:
        failed += sum(int(count) for count in re.findall(r"\d+", errors[1]))
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return failed + (int(refused[1]) if refused else 0)


def wrk_latency(text: str, label: str) -> float | None:
    found = re.search(rf"^\s+{label}\s+([\d.]+)(us|ms|s|m)\s*$", text, re.M)
    if not found:
        return None
    return float(found[1]) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}[found[2]]
