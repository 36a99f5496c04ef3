#!/usr/bin/env python3
"""Measures the load generator itself: what a request costs it, what it holds, what it sees.

  bench/generator.py                     all four, some five minutes
  bench/generator.py --only cost         beside wrk: same server, one thread each, in turn
  bench/generator.py --only http2        beside h2load, in the same way
  bench/generator.py --only held         100,000 connections in one process, with a probe
  bench/generator.py --only stall        a server that stands still 1 s of every 10 s
  bench/generator.py --rounds 9 --seconds 8

Drives crates/lab/examples/load.rs, and `gustnado bench` for HTTP/2. Writes
docs/results/generator.md; what was not measured this time stays there. Needs Python's standard
library, wrk for the first and h2load for the second.
"""

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace

import machine
from contenders import GUSTNADO_EPOLL, GUSTNADO_URING, HOST, Server, Work, send_signal
from holding import patient
from machine import BenchError, say

LOAD = str(machine.TARGET / "release" / "examples" / "load")
CONNECTIONS = 50
HELD = 100_000
HELD_WORKERS = 6
HELD_SECONDS = 10
# A p99 is shown from 1,000 responses on.
PROBE_RATE = 200
# Requests at once on each connection of HTTP/2.
STREAMS = (1, 10, 32, 100)
STALL_SECONDS, STALL_PERIOD, STALL_RUN = 1.0, 10.0, 30.0
STALL_RATE = 10_000
TOLERANCE = 0.05


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--only", choices=["cost", "http2", "held", "stall"])
    words.add_argument("--rounds", type=int, default=7)
    words.add_argument("--seconds", type=float, default=5)
    words.add_argument("--rate", type=int, default=STALL_RATE)
    words.add_argument("--built", action="store_true", help="take the programs as they are")
    words.add_argument("--publish", action="store_true", help="also over another machine's page")
    asked = words.parse_args()
    if not asked.built:
        machine.run_build(["cargo", "build", "--quiet", "--release", "-p", "gustnado-cli"])
        example = ["-p", "gustnado-lab", "--example", "load"]
        machine.run_build(["cargo", "build", "--quiet", "--release", *example])
    machine.raise_descriptor_limit()
    machine.BUILD.mkdir(parents=True, exist_ok=True)
    machine.make_site()
    path = machine.BUILD / "generator.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    if asked.only in (None, "cost"):
        found["cost"] = cost(asked.rounds, asked.seconds)
    if asked.only in (None, "http2"):
        found["http2"] = http2(asked.rounds, asked.seconds)
    if asked.only in (None, "held"):
        found["held"] = held()
    if asked.only in (None, "stall"):
        found["stall"] = stall(asked.rate)
    path.write_text(json.dumps(found, indent=1) + "\n")
    place = machine.page("generator.md", machine.describe(), asked.publish)
    place.write_text(page(found))
    say(f"written: {place}, and the raw numbers to {path}")
    return 0


def noted(figures: dict) -> dict:
    """Figures, with where and when they were measured."""
    about = machine.describe()
    return figures | {key: about[key] for key in ("commit", "date", "kernel", "cpus")}


def cost(rounds: int, seconds: float) -> dict:
    """CPU per request of both generators, in turn on the same server."""
    if shutil.which("wrk") is None:
        raise BenchError("wrk is not installed: apt-get install wrk")
    say("cost: beside wrk")
    samples: dict[str, list[dict]] = {"wrk": [], "gustnado": []}
    with Server(GUSTNADO_EPOLL, Work(13)) as server:
        server.await_ready()
        for _ in range(rounds):
            for name, taken in samples.items():
                used, requests = run_once(name, server, seconds)
                taken.append({"cpu_us": used / requests * 1e6, "per_second": requests / seconds})
                say(f"  {name}: {taken[-1]['cpu_us']:.2f} us, {taken[-1]['per_second']:.0f}/s")
    pairs = zip(samples["gustnado"], samples["wrk"])
    ratios = [ours["cpu_us"] / theirs["cpu_us"] for ours, theirs in pairs]
    return noted({"samples": samples, "ratio": statistics.median(ratios),
                  "ratio_min": min(ratios), "ratio_max": max(ratios), "seconds": seconds,
                  "wrk": machine.first_line(["wrk", "-v"]).split(" Copyright")[0]})


def run_once(name: str, server: Server, seconds: float) -> tuple[float, int]:
    """CPU seconds of the whole generator process, and the requests that it counted."""
    url = f"http://{HOST}:{server.port}{server.work.path}"
    if name == "wrk":
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{round(seconds)}s", url]
    else:
        command = [LOAD, url, str(CONNECTIONS), str(seconds), "1", "epoll"]
    before = machine.children_seconds()
    text = spoken([*machine.pinned(machine.LOAD_CPU), *command], seconds + 30)
    used = machine.children_seconds() - before
    if name == "wrk":
        if "Socket errors" in text or "Non-2xx" in text:
            raise BenchError("wrk had errors: " + " ".join(text.split())[-200:])
        return used, int(re.search(r"(\d+) requests in", text)[1])
    outcome = json.loads(text)
    if any(outcome["errors"].values()):
        raise BenchError(f"the generator had errors: {outcome['errors']}")
    return used, outcome["requests"]


def http2(rounds: int, seconds: float) -> dict:
    """CPU per request of both generators by HTTP/2 in clear, in turn on the same server."""
    if shutil.which("h2load") is None:
        raise BenchError("h2load is not installed: apt-get install nghttp2-client")
    say("http2: beside h2load")
    rows = []
    server_of = replace(GUSTNADO_EPOLL, extra=("--h2c",))
    with Server(server_of, Work(13)) as server:
        server.await_ready()
        for streams in STREAMS:
            samples: dict[str, list[float]] = {"h2load": [], "gustnado": []}
            for _ in range(rounds):
                for name, taken in samples.items():
                    used, requests = run_http2(name, server, seconds, streams)
                    taken.append(used / requests * 1e6)
            pairs = zip(samples["gustnado"], samples["h2load"])
            ratios = [ours / theirs for ours, theirs in pairs]
            rows.append({"streams": streams, "samples": samples,
                         "ratio": statistics.median(ratios),
                         "ratio_min": min(ratios), "ratio_max": max(ratios)})
            say(f"  {streams} streams: {rows[-1]['ratio']:.2f} times")
    return noted({"rows": rows, "rounds": rounds, "seconds": seconds,
                  "h2load": machine.first_line(["h2load", "--version"])})


def run_http2(name: str, server: Server, seconds: float, streams: int) -> tuple[float, int]:
    """CPU seconds of the whole generator process, and the requests that it counted."""
    url = f"http://{HOST}:{server.port}{server.work.path}"
    loop = [f"-c{CONNECTIONS}", f"-m{streams}", "-t1"]
    if name == "h2load":
        command = ["h2load", *loop, f"-D{round(seconds)}", url]
    else:
        command = [machine.gustnado(), "bench", *loop, f"-d{seconds:g}s", "--h2c", "--io", "epoll",
                   "--json", "--quiet", url]
    before = machine.children_seconds()
    text = spoken([*machine.pinned(machine.LOAD_CPU), *command], seconds + 30)
    used = machine.children_seconds() - before
    if name == "h2load":
        counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", text)
        if counts is None or counts[2] != "0" or counts[3] != "0":
            raise BenchError("h2load had errors: " + " ".join(text.split())[-200:])
        return used, int(counts[1])
    outcome = json.loads(text)
    if any(outcome["errors"].values()):
        raise BenchError(f"the generator had errors: {outcome['errors']}")
    return used, outcome["requests"]


def spoken(command: list[str], seconds: float) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds)
    if done.returncode:
        raise BenchError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def held() -> dict:
    """Idle connections in one process, and a probe among them."""
    say(f"held: {HELD:,} connections in one process")
    server_of = patient(GUSTNADO_URING, HELD)
    with Server(server_of, Work(13, workers=HELD_WORKERS), cpu=None) as server:
        server.await_ready()
        url = f"http://{HOST}:{server.port}{server.work.path}"
        command = [LOAD, url, "2", str(HELD_SECONDS), f"hold={HELD}", f"rate={PROBE_RATE}",
                   "source=127.0.0"]
        outcome = json.loads(spoken(command, 180 + HELD_SECONDS))
    say(f"  {outcome['held']}")
    return noted({"outcome": outcome, "limit": machine.raise_descriptor_limit()})


def stall(rate: int) -> dict:
    """An open and a closed loop on a server that is stopped for a second of every ten."""
    say(f"stall: {rate:,} requests per second, {STALL_SECONDS:g} s of every {STALL_PERIOD:g} s")
    with Server(GUSTNADO_EPOLL, Work(13)) as server:
        server.await_ready()
        url = f"http://{HOST}:{server.port}{server.work.path}"
        outcomes, stalls = {}, []
        for name, words in (("open", [f"rate={rate}"]), ("closed", [])):
            command = [*machine.pinned(machine.LOAD_CPU), LOAD, url, str(CONNECTIONS),
                       str(STALL_RUN), "1", "epoll", *words]
            over = threading.Event()
            lengths: list[float] = []
            hand = threading.Thread(target=stand_still, args=(server.process.pid, over, lengths))
            hand.start()
            try:
                outcomes[name] = json.loads(spoken(command, STALL_RUN + 60))
            finally:
                over.set()
                hand.join()
            stalls.append(lengths)
    truths = {percentile: truth(stalls[0], float(percentile))
              for percentile in ("95", "98", "99")}
    found = {percentile: outcomes["open"]["latency_us"]["percentiles"][percentile] / 1e6
             for percentile in truths}
    say(f"  truth {truths}, found {found}")
    return noted({"rate": rate, "stalls": stalls, "truth_s": truths, "found_s": found,
                  "outcomes": outcomes})


def stand_still(pid: int, over: threading.Event, lengths: list[float]) -> None:
    """Stops a server's process again and again, and notes for how long."""
    due = time.monotonic() + STALL_PERIOD / 2
    while not over.wait(max(0.0, due - time.monotonic())):
        send_signal(pid, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(STALL_SECONDS)
        send_signal(pid, signal.SIGCONT)
        lengths.append(time.monotonic() - began)
        due += STALL_PERIOD


def truth(lengths: list[float], percentile: float) -> float:
    """The latency that this share of all evenly due requests does not pass, in seconds: one that
    is due within a stall waits for its end. (What the line costs after it is left out.)"""
    slower = STALL_RUN * (1 - percentile / 100)
    # Of each stall, those due in its first moments wait longest: find how long to look.
    low, high = 0.0, max(lengths)
    for _ in range(60):
        middle = (low + high) / 2
        above = sum(max(0.0, length - middle) for length in lengths)
        low, high = (middle, high) if above > slower else (low, middle)
    return low


def page(found: dict) -> str:
    parts = ["# The load generator", "",
             "What a request costs it, what it holds and what it sees. `bench/generator.py` "
             "measures it.", ""]
    for key, section in (("cost", cost_section), ("http2", http2_section),
                         ("held", held_section), ("stall", stall_section)):
        if key in found:
            parts += [*section(found[key]), where(found[key]), ""]
    return "\n".join(parts).rstrip() + "\n"


def where(figures: dict) -> str:
    return (f"Measured on {figures['date']} at commit `{figures['commit']}`,\n"
            f"Linux {figures['kernel']}, {figures['cpus']}.")


def cost_section(figures: dict) -> list[str]:
    rows = []
    for name, taken in figures["samples"].items():
        cpu = [sample["cpu_us"] for sample in taken]
        rate = statistics.median(sample["per_second"] for sample in taken)
        rows.append(f"| {name} | {statistics.median(cpu):.2f} | {min(cpu):.2f} to {max(cpu):.2f} "
                    f"| {rate:,.0f} |")
    rounds = len(figures["samples"]["wrk"])
    return [
        "## A request's cost", "",
        f"A request costs it **{figures['ratio']:.2f} times** the CPU time that it costs wrk: "
        f"median of {rounds} rounds",
        f"in turn, from {figures['ratio_min']:.2f} to {figures['ratio_max']:.2f}. One thread each, "
        f"{CONNECTIONS} connections, epoll, 13-byte file,",
        f"{figures['seconds']:g} s per round; the server (`gustnado serve --workers 1`) on CPU 0, "
        "the generator on CPU 1.",
        f"CPU time is that of the whole generator process. {figures['wrk']}.", "",
        "| generator | CPU us per request | rounds | requests per second |",
        "| --- | --- | --- | --- |", *rows, "",
        "wrk checks the status of each response. Ours looks at status and length of each, at the "
        "body of every 100th,", "and keeps a histogram for each second.", "",
    ]


def http2_section(figures: dict) -> list[str]:
    rows = []
    for row in figures["rows"]:
        ours, theirs = (statistics.median(row["samples"][name]) for name in ("gustnado", "h2load"))
        rows.append(f"| {row['streams']} | {ours:.2f} | {theirs:.2f} | {row['ratio']:.2f} "
                    f"({row['ratio_min']:.2f} to {row['ratio_max']:.2f}) |")
    return [
        "## A request's cost by HTTP/2", "",
        f"In the same way beside h2load, in clear, by the streams at once on each of {CONNECTIONS} "
        "connections;",
        f"{figures['rounds']} rounds of {figures['seconds']:g} s. {figures['h2load']}.", "",
        "| streams | CPU us per request | h2load's | ratio, median of rounds |",
        "| --- | --- | --- | --- |", *rows, "",
        "h2load looks at statuses only.", "",
    ]


def held_section(figures: dict) -> list[str]:
    outcome = figures["outcome"]
    held, latency = outcome["held"], outcome["latency_us"]["percentiles"]
    lost = f"{held['lost']:,} were lost, {sum(outcome['errors'].values()):,} errors"
    return [
        "## Connections held", "",
        f"**{held['opened']:,} of {held['asked']:,} idle connections** in one process whose limit "
        f"is {figures['limit']:,} descriptors,",
        f"opened in {held['opening_s']:.1f} s by {outcome['model']['threads']} threads with a ring "
        f"each; {lost}.", "",
        f"A probe among them, {PROBE_RATE} requests per second for {outcome['duration_s']:.0f} s: "
        f"median {latency['50'] / 1000:.2f} ms, p99 {latency['99'] / 1000:.2f} ms.", "",
    ]


def stall_section(figures: dict) -> list[str]:
    rows = []
    closed = figures["outcomes"]["closed"]
    for percentile, truth_s in figures["truth_s"].items():
        found = figures["found_s"][percentile]
        hidden = closed["latency_us"]["percentiles"][percentile] / 1000
        rows.append(f"| p{percentile} | {truth_s * 1000:.0f} ms | {found * 1000:.0f} ms | "
                    f"{(found / truth_s - 1) * 100:+.1f} % | {hidden:.1f} ms |")
    warning = next((word for word in closed["warnings"] if "hides a stall" in word), "none")
    open_ = figures["outcomes"]["open"]
    return [
        "## A stall", "",
        f"The server is stopped for {STALL_SECONDS:g} s of every {STALL_PERIOD:g} s, over "
        f"{STALL_RUN:g} s. Of requests that are due evenly,",
        f"the truth follows. The open loop asks {figures['rate']:,} times per second on "
        f"{CONNECTIONS} connections, and had {open_['requests']:,} right answers.", "",
        "| | truth | open loop | off by | closed loop |", "| --- | --- | --- | --- | --- |", *rows,
        "", "What the closed loop says about itself:", "", f"> {warning}", "",
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        say(f"generator.py: {error}")
        sys.exit(1)
