#!/usr/bin/env python3
"""How long honest requests take beside clients that would have a worker for themselves.

  bench/fairness.py                      both backends, both attacks, 10 s each
  bench/fairness.py --report             the same, kept in docs/results/fairness.md

The server has one worker on the first CPU; whoever attacks has the second, and the honest client
goes before them there (SCHED_FIFO, where that is allowed). All on loopback; it ends by itself.
"""

import argparse
import contextlib
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

SERVER = machine.TARGET / "release/gustnado"
HOST = "127.0.0.1"
PIPELINES = 4
SLOW_READERS = 1_000
GOALS = {"p50": 1.0, "p99.9": 10.0, "worst": 25.0}
# As an attacker would have it: the answer is short, and the request is dearer than others.
PIPELINED = b"GET /file HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n" * 1_000
HONEST = b"GET /file HTTP/1.1\r\nHost: h\r\n\r\n"


def pipeline(address, ends):
    """Keeps a pipeline full and reads what comes back, until it is told to end."""
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    peer = socket.create_connection(address)
    peer.setblocking(False)
    at = 0
    while not ends.is_set():
        with contextlib.suppress(BlockingIOError):
            at = (at + peer.send(PIPELINED[at:])) % len(PIPELINED)
        with contextlib.suppress(BlockingIOError):
            if not peer.recv(1 << 18):
                raise SystemExit("the server has closed a pipeline")


def slow_readers(address, ends):
    """Asks for a large file again and again without reading it, on many connections."""
    peers = []
    for _ in range(SLOW_READERS):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(address)
        peer.setblocking(False)
        peer.send(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        peers.append(peer)
    while not ends.is_set():
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(HONEST * 10)
        for peer in peers[::10]:
            with contextlib.suppress(OSError):
                peer.recv(1024)
        time.sleep(0.05)


def honest(address, seconds, results):
    """Asks on a kept connection and on new ones; sends back how long each answer took."""
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    kept, times = socket.create_connection(address), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        times.append(timed(lambda: ask(kept)))
        times.append(timed(lambda: ask_once(address)))
        time.sleep(0.002)
    results.send(times)


def timed(act):
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1_000


def ask(peer):
    peer.sendall(HONEST)
    answer = b""
    while not answer.endswith(b"small"):
        piece = peer.recv(65_536)
        if not piece:
            raise SystemExit("an honest client was closed")
        answer += piece
    assert answer.startswith(b"HTTP/1.1 200"), answer


def ask_once(address):
    with socket.create_connection(address) as peer:
        ask(peer)


def measure(io, attack, seconds):
    """One server, one attack: the honest client's times in milliseconds, sorted."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file").write_text("small")
        with open(Path(folder) / "large", "wb") as large:
            large.truncate(256 << 20)
        command = ["taskset", "-c", "0", SERVER, "serve", folder, "--port", "0", "--io", io]
        command += ["--workers", "1"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            return attacked(address_of(server), attack, seconds)
        finally:
            server.terminate()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()


def address_of(server):
    for line in server.stdout:
        if b"http://" in line:
            port = line.split(b"http://", 1)[1].split(b":")[1]
            return HOST, int("".join(filter(str.isdigit, port.decode().split("/")[0])))
    raise SystemExit("the server did not start")


def attacked(address, attack, seconds):
    ends = multiprocessing.Event()
    attackers = {"none": [], "pipelines": [pipeline] * PIPELINES, "slow readers": [slow_readers]}
    running = [
        multiprocessing.Process(target=act, args=(address, ends), daemon=True)
        for act in attackers[attack]
    ]
    for process in running:
        process.start()
    time.sleep(1.5 if running else 0.1)
    mine, theirs = multiprocessing.Pipe()
    probe = multiprocessing.Process(target=honest, args=(address, seconds, theirs), daemon=True)
    probe.start()
    if not mine.poll(seconds + 60):
        raise SystemExit(f"{attack}: the honest client did not come to its end")
    times = sorted(mine.recv())
    probe.join(5)
    ends.set()
    for process in running:
        process.join(5)
        if process.exitcode:
            raise SystemExit(f"{attack}: an attacker has failed")
    return times


def figures(times):
    return {
        "requests": len(times),
        "p50": times[len(times) // 2],
        "p99": times[len(times) * 99 // 100],
        "p99.9": times[len(times) * 999 // 1_000],
        "worst": times[-1],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--report", action="store_true", help="write docs/results/fairness.md")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    chosen = parser.parse_args()
    lines = ["| backend | beside | requests | p50 ms | p99 | p99.9 | worst |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    missed = []
    print(*lines, sep="\n")
    for io in ("epoll", "uring"):
        for attack in ("none", "pipelines", "slow readers"):
            row = figures(measure(io, attack, chosen.seconds))
            cells = [f"{row[name]:.2f}" for name in ("p50", "p99", "p99.9", "worst")]
            lines.append("| " + " | ".join([io, attack, str(row["requests"]), *cells]) + " |")
            print(lines[-1], flush=True)
            missed += [f"{io}, {attack}: {name}" for name in GOALS if row[name] > GOALS[name]]
    verdict = "Missed: " + "; ".join(missed) + "." if missed else "All goals are reached."
    print(verdict)
    if chosen.report:
        keep(lines, verdict, chosen.publish)
    return 1 if missed else 0


def keep(lines, verdict, publish):
    about = machine.describe()
    goals = ", ".join(f"{name} {value:g} ms" for name, value in GOALS.items())
    text = f"""# Honest clients next to clients that would have a worker for themselves

`bench/fairness.py --report`, {about["date"]}, commit {about["commit"]}, Linux {about["kernel"]},
{about["cpus"]}.

One worker on one CPU. {PIPELINES} pipelines that are always full, or {SLOW_READERS} connections
that read nothing of a large file and send more; they share the other CPU with an honest client,
which asks on a kept connection and on new ones. Goals: {goals}. {verdict}

"""
    machine.page("fairness.md", about, publish).write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
