#!/usr/bin/env python3
"""Counts, holds and starts Gustnado side by side with the null servers and nginx. Loads are
contests (contests/foundation.toml).

  bench/run.py                     everything but c1m (some ten minutes)
  bench/run.py idle start          these two only
  bench/run.py --quick             short rounds, to see that it works; judges nothing
  bench/run.py --gate              the counted figures only; fails where one is not reached (CI)
  bench/run.py c1m                 a million connections in one process

Ends with 1 where a figure is not reached, except after --quick. Needs Python's standard library
only. Missing programs are installed from Debian.
"""

import argparse
import dataclasses
import os
import signal
import sys

import counts
import holding
import machine
import report
from contenders import (
    FIVE,
    GUSTNADO_EPOLL,
    GUSTNADO_URING,
    NGINX,
    NULL_EPOLL,
    NULL_URING,
    Contender,
    scheduled,
)
from machine import BenchError, say

COUNTED = ["instructions", "syscalls", "size"]
ALL = [*COUNTED, "idle", "idle100k", "start"]
SCHEDULERS = ["pool", "pool-shared", "queue", "queue-shared"]
IDLE_CONNECTIONS = 10_000
IDLE_CONNECTIONS_MANY = 100_000
IDLE_WORKERS_MANY = 6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join([*ALL, "c1m"])
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=f"one of {names}")
    parser.add_argument("--quick", action="store_true", help="short, into target/bench only")
    parser.add_argument("--gate", action="store_true", help="the counted figures, for CI")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    parser.add_argument("--only", metavar="NAMES", help="only these contenders, comma-separated")
    parser.add_argument("--connections", type=int, default=holding.MILLION, help="for c1m")
    chosen = parser.parse_args()
    for name in chosen.scenarios:
        if name not in ALL and name != "c1m":
            parser.error(f"no scenario {name}; there are {names}")
    known = {word for one in FIVE for word in (one.name, one.kind)}
    for name in (chosen.only or "").split(","):
        if name and name.split()[0] not in known:
            parser.error(f"no contender {name}; there are {', '.join(sorted(known))}")
    if not chosen.scenarios:
        chosen.scenarios = COUNTED if chosen.gate else ALL
    return chosen


def main() -> int:
    chosen = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are ended on the way
    try:
        return measure(chosen)
    except BenchError as error:
        say(f"bench: {error}")
        return 1


def measure(chosen: argparse.Namespace) -> int:
    prepare(chosen)
    name = "gate" if chosen.gate else "quick" if chosen.quick else "counted"
    is_counted = name == "counted"
    results = report.load_results(machine.BUILD / f"{name}.json") if is_counted else {}
    meta = machine.describe()
    for key in chosen.scenarios:
        results[key] = {**measure_one(key, chosen), "meta": meta}
        page = report.write(machine.BUILD, name, in_order(results))
    text = page.read_text()
    print(text)
    if is_counted:
        page = machine.page(page.name, meta, chosen.publish)
        page.write_text(text)
    say(f"written to {page}")
    missed = [v for key in chosen.scenarios for v in results[key]["verdicts"] if not v["met"]]
    for verdict in missed:
        say(f"not reached: {verdict['measure']}: {verdict['found']}, wanted {verdict['reach']}")
    if chosen.quick:
        return 0  # too short to judge anything by
    # The gate allows the counted figures their slack.
    failed = [verdict for verdict in missed if not (chosen.gate and verdict.get("passes"))]
    return 1 if failed else 0


def prepare(chosen: argparse.Namespace) -> None:
    programs = ["gcc", "taskset", "wrk", "strace", "valgrind"]
    if not chosen.gate:
        programs += ["nginx"]
    machine.install_missing(programs)
    machine.raise_descriptor_limit()
    ours = any(wanted(contender, chosen) for contender in (GUSTNADO_EPOLL, GUSTNADO_URING))
    profiles = {"profiling" if key in COUNTED else "release" for key in chosen.scenarios}
    machine.build(sorted(profiles) if ours else [])


def in_order(results: dict) -> dict:
    """The scenarios in one order, whatever order they were run in."""
    order = [*COUNTED, "idle", "idle100k", "c1m", "start"]
    return {key: results[key] for key in order if key in results}


def wanted(contender: Contender, chosen: argparse.Namespace) -> bool:
    if chosen.gate and contender.kind == "nginx":
        return False
    if not chosen.only:
        return True
    names = chosen.only.split(",")
    return contender.name in names or contender.kind in names


def measure_one(key: str, chosen: argparse.Namespace) -> dict:
    """Runs one scenario with those contenders that are wanted."""
    def pick(every: list[Contender]) -> list[Contender]:
        return [contender for contender in every if wanted(contender, chosen)]

    if key == "instructions":
        # One process: callgrind follows no children.
        on_epoll = [GUSTNADO_EPOLL, NULL_EPOLL, dataclasses.replace(NGINX, extra=("single",))]
        return counts.instructions([with_symbols(one) for one in pick(on_epoll)])
    if key == "syscalls":
        return counts.system_calls([with_symbols(one) for one in pick(FIVE)], 3)
    if key == "size":
        # (CI has no time for another release build.)
        is_one = os.environ.get("GATE_ONE_SIZE") == "1"
        without_lab = None if is_one else machine.build_without_lab("profiling")
        return counts.size(machine.gustnado("profiling"), without_lab)
    if key == "idle":
        return idle_everywhere(pick, chosen.quick)
    if key == "idle100k":
        return idle_many(pick, chosen.quick)
    if key == "c1m":
        return holding.million(GUSTNADO_URING, chosen.connections)
    return holding.start(pick(FIVE))


def with_symbols(contender: Contender) -> Contender:
    """Ours from the profiling build: the release code with its symbols. The gate needs no other."""
    ours = contender.kind == "gustnado"
    return dataclasses.replace(contender, profile="profiling") if ours else contender


def idle_everywhere(pick, quick: bool) -> dict:
    ours = [scheduled(io, name) for io in ("epoll", "uring") for name in SCHEDULERS]
    seconds = 2 if quick else 10
    chosen = pick([*ours, NULL_EPOLL, NULL_URING, NGINX])
    holds = [holding.Hold(each, IDLE_CONNECTIONS, 1, seconds) for each in chosen]
    return holding.idle("idle", "10,000 idle connections", holds)


def idle_many(pick, quick: bool) -> dict:
    seconds = 2 if quick else 10
    hold = holding.Hold(GUSTNADO_URING, IDLE_CONNECTIONS_MANY, IDLE_WORKERS_MANY, seconds)
    return holding.idle("idle100k", "100,000 idle connections in one process", [hold])


if __name__ == "__main__":
    sys.exit(main())
