#!/usr/bin/env python3
"""Holds the contests that come with the source and writes what they found.

  bench/contests.py                      all of them, some two hours
  bench/contests.py qurricane niosted    these
  bench/contests.py --from DIR qurricane takes a contest that was held already, from its folder

Each one's report and raw data stay in target/bench/contest-NAME, and docs/results/contests.md gets
its tables. Needs Python's standard library, and the servers that the contests name: one that is not
installed is a row that says so.
"""

import argparse
import json
import statistics
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import machine
from machine import BenchError, say

PAGE = machine.ROOT / "docs" / "results" / "contests.md"
NAMES = ["c10k", "workloads", "qurricane", "niosted", "asynchttpd", "tinyhttpserver"]
# What the figures do not say by themselves.
REMARKS = {
    "c10k": "Held with the system's settings as `gustnado doctor --apply` makes them; that of open "
    "files\nstayed at 20,000. Where a server did not let all connections in, the load went "
    "without them, and\nwhat they could not ask is among the failures. What this contest found "
    "of the large file was\nmended since: [large-files.md](large-files.md).",
    "workloads": "The JDK's server as it comes waits some 40 ms for each response on 10 kept "
    "connections,\nwhich looks like Nagle's algorithm, and resets many of 1,000. "
    "Neither was looked into.",
    "niosted": "Niosted's own table, on a machine of its time: its reactor in Java 5,153 "
    "requests/s and in Jython 2,795,\nCyclone on it 800 at most, Tornado 1,800 at most.\n\n"
    "ab speaks HTTP/1.0, with a connection for each request. Near 45,000 requests/s it was ab "
    "itself that\ncould do no more (`generator_bottleneck` in the raw data): compare CPU per "
    "request there.\n\nWith a connection for each request our reactor gains least: under ab it "
    "costs x 0.91 of Twisted's epoll\nper request, for Twisted and for Cyclone. Making the "
    "protocol's objects for a connection is Python's\npart, and stays. On connections that are "
    "kept, it costs x 0.20 for Twisted and x 0.58 for "
    "Cyclone.\n\nHeld with the settings that `gustnado doctor --apply` makes; open files stayed "
    "at 20,000.",
    "asynchttpd": "There is no decay: no server is slower in the 50th second than in the fifth.",
    "tinyhttpserver": "Servers and generator shared the two CPUs of the machine here.",
}

def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    words.add_argument("--from", dest="output", type=Path, metavar="DIR",
                       help="a contest's output")
    asked = words.parse_args()
    wrong = [name for name in asked.names if name not in NAMES]
    if wrong or (asked.output and len(asked.names) != 1):
        words.error(f"expected {'one of ' if asked.output else ''}{', '.join(NAMES)}")
    for name in asked.names or NAMES:
        record = json.loads(((asked.output or hold(name)) / "contest.json").read_text())
        PAGE.write_text(page(name, record))
    say(f"written to {PAGE.relative_to(machine.ROOT)}")
    return 0


def hold(name: str) -> Path:
    machine.build(["release"])
    program = machine.ROOT / "target" / "release" / "gustnado"
    output = machine.BUILD / f"contest-{name}"
    file = machine.ROOT / "examples" / f"{name}.toml"
    done = subprocess.run([program, "contest", "--output", output, file], stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError(f"the contest {name} ended with {done.returncode}")
    return output


def page(held: str, record: dict) -> str:
    """The page with the section of one contest made of its record. The others stay as they are."""
    found = PAGE.read_text().split("\n## ")[1:]
    parts = [
        "# What the contests found", "",
        "Made by `bench/contests.py`. The figures are medians over rounds; how far rounds are",
        "apart, and whether a difference is more than noise, is in the report that each run leaves",
        "in `target/bench`. [How to read them](../contest.md).", "",
    ]
    for name in NAMES:
        if name == held:
            parts += section(name, record)
        else:
            own = [text for text in found if f"examples/{name}.toml" in text]
            parts += [f"## {own[0].rstrip()}", ""] if own else []
    return "\n".join(parts).rstrip() + "\n"


def section(name: str, record: dict) -> list[str]:
    around = record["environment"]
    when = datetime.fromtimestamp(record["started_unix_s"], timezone.utc).strftime("%Y-%m-%d")
    rounds = max((run["round"] for run in record["runs"]), default=0)
    lines = [
        f"## {record['title']}", "",
        f"From `examples/{name}.toml`; {when}, commit `{around['commit']}`,",
        f"{around['kernel']}, {around['cpus']} x {around['cpu']}; "
        f"{rounds} rounds.", "",
    ]
    for scenario in record["scenarios"]:
        lines += [f"**{scenario['title']}**: {scenario['sentence']}", "",
                  "| server | us CPU per request | requests/s | p50 ms | p99 ms | failures |",
                  "| --- | --- | --- | --- | --- | --- |"]
        lines += [row(record, scenario, one) for one in record["contenders"]] + [""]
    return lines + ([REMARKS[name], ""] if name in REMARKS else [])


def row(record: dict, scenario: dict, contender: dict) -> str:
    runs = [run for run in record["runs"]
            if (run["contender"], run["scenario"]) == (contender["name"], scenario["name"])
            and run["outcome"]]
    name = contender["name"]
    if not runs:
        state = contender["fate"]["state"].replace("-", " ")
        return f"| {name} | {'not measured' if state == 'ran' else state} | | | | |"
    failures = sum(sum(run["outcome"]["errors"].values()) for run in runs)
    figures = [median(runs, cpu_us), median(runs, lambda run: run["outcome"]["requests_per_s"])]
    figures += [median(runs, lambda run, of=of: percentile(run, of)) for of in ("50", "99")]
    texts = ["-" if figure is None else f"{figure:,.{places}f}"
             for figure, places in zip(figures, (1, 0, 2, 2))]
    return f"| {name} | {' | '.join(texts)} | {failures:,} |"


def median(runs: list[dict], of) -> float | None:
    found = [figure for figure in map(of, runs) if figure is not None]
    return statistics.median(found) if found else None


def cpu_us(run: dict) -> float | None:
    requests, usage = run["outcome"]["requests"], run["usage"]
    return (usage["cpu_user_s"] + usage["cpu_system_s"]) / requests * 1e6 if requests else None


def percentile(run: dict, of: str) -> float | None:
    latency = run["outcome"]["latency_us"]
    return latency["percentiles"][of] / 1000 if latency["count"] else None


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        say(f"contests.py: {error}")
        sys.exit(1)
