#!/usr/bin/env python3
"""All attacks at once, and whether honest clients feel them.

    make hostile                                   # ten minutes
    make hostile HOSTILE_SECONDS=120
    bench/hostile.py --program target/release/gustnado --seconds 600 --report

Each backend serves a folder and routes. Attackers come for its share of the time: slow heads, slow
bodies, slow readers, full pipelines, connection floods, a connection per request, half-closed
clients, resets, bad bytes, bursts, and many ranges of a large file. An honest client asks beside.

It ends with 1 and a sentence for each thing that is wrong: an honest request failed, the honest
99.9th percentile is over 50 ms, memory grows by more than the server was given (`--max-memory`), or
memory, descriptors or connections do not come back.

Loopback only. It ends by itself, and ends what it has started by its process id, and nothing else.
"""

import argparse
import multiprocessing
import os
import queue
import signal
import sys
import time
from pathlib import Path

import machine
from hostile import attacks, crowd, full, honest, served, verdict

HONEST_RATE = 50  # of each of its four kinds of request, a second
BACK_WITHIN_S = 45
LOOK_EVERY_S = 0.2
DESCRIPTORS_MIN = 8_192


def cpu_sets():
    """The server's CPUs, and those of all others: half each, or the only one for both."""
    cpus = sorted(os.sched_getaffinity(0))
    half = max(1, len(cpus) // 2)
    return cpus[:half], cpus[half:] or cpus


def look_until(server, until, worst):
    """Keeps the most that the server has used of each, until it is time. False if it has ended."""
    while time.monotonic() < until:
        use = server.use()
        if use is None:
            return False
        for name, number in use.items():
            worst[name] = max(worst.get(name, 0), number)
        time.sleep(LOOK_EVERY_S)
    return True


def start_attackers(port, until, cpus):
    """All attackers, as processes. What they count comes through the queue."""
    results = multiprocessing.Queue()
    about = [(crowd.run, (plan, port, until, results, cpus)) for plan in attacks.PLANS]
    about.append((full.run, (port, until, results, cpus)))
    processes = [multiprocessing.Process(target=run, args=arguments, daemon=True)
                 for run, arguments in about]
    for process in processes:
        process.start()
    return processes, results


def end_attackers(processes, results):
    """Takes what they have counted, and sees that they have ended."""
    counted = {}
    for _ in processes:
        try:
            counted |= results.get(timeout=20)
        except queue.Empty:
            break  # an attacker that is stuck has counted nothing, and the verdict says so
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()
    return counted


def wait_until_back(server, before, limits):
    """Waits until the server uses as much as before, or until that has taken too long."""
    start = time.monotonic()
    while True:
        use = server.use() or dict(before)
        back = (use["memory_kb"] - before["memory_kb"] <= limits.memory_slack_kb
                and use["descriptors"] - before["descriptors"] <= verdict.DESCRIPTORS_SLACK
                and use["connections"] <= before["connections"])
        took = time.monotonic() - start
        if back or took > BACK_WITHIN_S:
            return use, took
        time.sleep(LOOK_EVERY_S)


def run_backend(backend, site, limits, seconds):
    """One server, from its start to its end: without an attack, under it, after it."""
    server_cpus, other_cpus = cpu_sets()
    os.sched_setaffinity(0, other_cpus)
    quiet_s = min(20.0, max(2.0, seconds / 10))
    attack_s = max(2.0, seconds - quiet_s - 5)
    echo = honest.Echo(server_cpus, seconds + 120)
    flags = ["--max-memory", f"{limits.max_memory_mb}m"]
    server, processes = served.Server(limits.program, backend, site, server_cpus, flags), []
    run = {"backend": backend, "quiet_s": quiet_s, "attack_s": attack_s,
           "server_cpus": len(server_cpus), "worst": {}}
    try:
        asked = honest.Honest(server, echo.port, HONEST_RATE, quiet_s, other_cpus)
        run["quiet"] = honest.summary(asked.stop())
        time.sleep(0.5)  # the counters come each quarter of a second
        run["before"] = server.use()
        asked = honest.Honest(server, echo.port, HONEST_RATE, attack_s, other_cpus)
        processes, results = start_attackers(server.port, asked.until, other_cpus)
        alive = look_until(server, asked.until, run["worst"])
        run["attacked"] = honest.summary(asked.stop())
        run["attacks"] = end_attackers(processes, results)
        run["after"], run["after_s"] = wait_until_back(server, run["before"], limits)
        run["cpu_s"] = run["worst"]["cpu_s"] - run["before"]["cpu_s"]
        if not alive:
            run["attacked"]["failures"].append("the server has ended under attack")
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
        run["code"] = server.stop()
        echo.stop()
    run["counters"], run["said"] = server.counters, server.said
    run["problems"] = verdict.problems(run, limits)
    return run


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=machine.gustnado())
    parser.add_argument("--seconds", type=float, default=600, help="in all, over the backends")
    parser.add_argument("--backends", default="uring,epoll")
    parser.add_argument("--p999-max-ms", type=float, default=50)
    parser.add_argument("--memory-slack-kb", type=int, default=verdict.MEMORY_SLACK_KB)
    parser.add_argument("--max-memory-mb", type=int, default=64, help="of the server's ledger")
    parser.add_argument("--report", action="store_true", help="write docs/results/hostile.md")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    given = parser.parse_args()
    given.machine = machine.describe()
    if not Path(given.program).is_file():
        parser.error(f"{given.program} does not exist: cargo build --release -p gustnado-cli")
    if machine.raise_descriptor_limit() < DESCRIPTORS_MIN:
        parser.error(f"{DESCRIPTORS_MIN} descriptors are needed: see `ulimit -Hn`")
    return given


def main():
    given = arguments()
    # (What is ended by a signal cleans up, too.)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    multiprocessing.set_start_method("fork")
    backends, runs = given.backends.split(","), []
    site = served.Site()
    try:
        for backend in backends:
            print(f"{backend}: attacked for {given.seconds / len(backends):.0f} s", flush=True)
            runs.append(run_backend(backend, site, given, given.seconds / len(backends)))
            print(verdict.section(runs[-1]) + "\n", flush=True)
    finally:
        site.remove()
    if given.report:
        page = machine.page("hostile.md", given.machine, given.publish)
        page.write_text(verdict.page(runs, given.machine))
    wrong = [one for run in runs for one in run["problems"]]
    for one in wrong:
        print(f"hostile: failed: {one}", file=sys.stderr)
    if not wrong:
        print("hostile: honest clients were served, and everything came back")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
