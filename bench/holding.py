"""Connections that are held: memory, idle CPU and a probe among them; a million; and the start."""

import os
import queue
import shutil
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contenders import HOST, Contender, Server, Work, check_answer, send_signal
from load import Load, Wrk
from machine import BUILD, BenchError, say

# Nothing is to be closed while we look, and a million closes take their time.
PATIENT = ("--timeout-keep-alive", "3600s", "--timeout-graceful-shutdown", "60s")
PROBES = 2000
BYTES_PER_CONNECTION_MAX = 200
BYTES_FIXED_MAX = 4 << 20
BYTES_PER_WORKER_MAX = 1 << 20
IDLE_CPU_SECONDS_MAX = 0.005
PROBE_P99_US_MAX = 2000
MILLION = 1_000_000
MILLION_WORKERS = 60  # x 20,000 descriptors x 95 % = 1,140,000 places
MILLION_SECONDS_MAX = 420
KERNEL_BYTES_PER_CONNECTION = 7200  # both ends, on loopback
STARTS = 11


def memory_max(connections: int, workers: int) -> int:
    """The most that a process may use with so many idle connections."""
    slope = BYTES_PER_CONNECTION_MAX * connections
    return slope + BYTES_FIXED_MAX + BYTES_PER_WORKER_MAX * workers


class Client:
    """A client program that speaks lines: it opens, then obeys standard input."""

    def __init__(self, command: list[str]):
        self.name = Path(command[0]).name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("")  # end of file

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (subprocess.TimeoutExpired, OSError):
            send_signal(self.process.pid, 9)
            self.process.wait(10)

    def tell(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def await_line(self, word: str, seconds: float) -> list[str]:
        """The words after `word` on the first line that starts with it."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise BenchError(f"{self.name}: no {word} within {seconds:.0f} s") from None
            if not line:
                raise BenchError(f"{self.name} ended before it said {word}")
            if line.startswith(word + " "):
                return line.split()[1:]
            say("  " + line)


@dataclass(frozen=True)
class Hold:
    """So many idle connections on one server, looked at for a while."""

    contender: Contender
    connections: int
    workers: int
    seconds: float


def idle(key: str, title: str, holds: list[Hold]) -> dict:
    """Memory, CPU and a probe's latency, with connections that made one request and kept still."""
    say(f"{key}: {title}")
    rows, missing, verdicts = [], {}, []
    for hold in holds:
        name = hold.contender.name
        row = None
        try:
            row = hold_idle(hold)
            rows.append(row)
            say(f"  {name}: {row['opened']} open, {row['failed']} failed, "
                f"{row['per_connection']:.0f} B each, CPU {row['cpu_ms']:.1f} ms")
        except (BenchError, OSError) as error:
            missing[name] = str(error)
            say(f"  {name}: {error}")
        if hold.contender.kind == "gustnado":
            verdicts += idle_verdicts(hold, row)
    return {
        "kind": "idle",
        "title": title,
        "how": f"bench/idle.c; CPU over {holds[0].seconds:.0f} s; {PROBES} probes, one at a time",
        "note": "Bytes each: growth over the warmed-up empty server. On io_uring the shared "
        "schedulers run on epoll.",
        "rows": rows,
        "missing": missing,
        "verdicts": verdicts,
    }


def hold_idle(hold: Hold) -> dict:
    work = Work(13, workers=hold.workers)
    command = [str(BUILD / "idle")]
    with Server(patient(hold.contender, hold.connections), work, cpu=None) as server:
        server.await_ready()
        warm_up(server, work)
        empty = server.rss_bytes()
        command += [str(server.port), work.path, str(hold.connections), str(PROBES)]
        with Client(command) as client:
            opened, failed, seconds = client.await_line("READY", 60 + hold.connections / 2000)
            time.sleep(1)
            full = server.rss_bytes()
            cpu = server.cpu_seconds()
            time.sleep(hold.seconds)
            cpu = server.cpu_seconds() - cpu
            client.tell("probe")
            ok, p50, p99, worst = client.await_line("PROBE", 60)
        return {
            "name": hold.contender.name,
            "workers": hold.workers,
            "opened": int(opened),
            "failed": int(failed),
            "seconds": float(seconds),
            "empty_bytes": empty,
            "full_bytes": full,
            "per_connection": (full - empty) / max(1, int(opened)),
            "cpu_ms": cpu * 1000,
            "probes": int(ok),
            "p50_us": float(p50),
            "p99_us": float(p99),
            "worst_us": float(worst),
        }


def patient(contender: Contender, connections: int) -> Contender:
    """The contender with room for the connections, and a keep-alive time-out that does not bite."""
    if contender.kind != "gustnado":
        return contender
    room = ("--connections-max", str(connections + connections // 10 + 100))
    return Contender(
        contender.name, contender.kind, contender.io, contender.scheduler, extra=PATIENT + room
    )


def warm_up(server: Server, work: Work) -> None:
    """Two hundred short-lived connections, so that what is touched once has been touched."""
    for _ in range(200):
        with socket.create_connection((HOST, server.port), timeout=5) as link:
            check_answer(server.contender.name, link, work)
    time.sleep(0.2)


def idle_verdicts(hold: Hold, row: dict | None) -> list[dict]:
    name, most = hold.contender.name, memory_max(hold.connections, hold.workers)
    whole = row is not None and row["failed"] == 0 and row["opened"] == hold.connections
    held = f"{name}, {hold.connections:,} idle"
    return [
        check(f"{held}: process memory", f"<= {most / 1e6:.1f} MB", row and row["full_bytes"] / 1e6,
              "MB", whole and row["full_bytes"] <= most),
        check(f"{held}: CPU over {hold.seconds:.0f} s", "0", row and row["cpu_ms"], "ms",
              whole and row["cpu_ms"] <= IDLE_CPU_SECONDS_MAX * 1000),
        check(f"{held}: probe's p99", "< 2 ms", row and row["p99_us"] / 1000, "ms",
              whole and row["probes"] == PROBES and row["p99_us"] < PROBE_P99_US_MAX),
    ]


def check(measure: str, reach: str, found: float | None, unit: str, met: bool) -> dict:
    """One line of the table of figures."""
    number = f"{found:,}" if isinstance(found, int) else f"{found or 0:.2f}"
    text = "not measured" if found is None else f"{number} {unit}"
    return {"measure": measure, "reach": reach, "found": text, "met": bool(met)}


def million(contender: Contender, wanted: int) -> dict:
    """A million connections in one process, and the rate among them."""
    say(f"c1m: {wanted:,} connections in one process")
    connections = affordable(wanted)
    warn_of_tracking(connections)
    workers = max(1, -(-MILLION_WORKERS * connections // MILLION))
    try:
        row, missing = hold_million(contender, connections, workers), {}
    except (BenchError, OSError) as error:
        say(f"  {error}")
        row, missing = None, {contender.name: str(error)}
    met = row is not None and row["opened"] == wanted and row["failed"] == 0
    return {
        "kind": "million",
        "title": f"{wanted:,} connections in one process",
        "how": f"bench/c1m_client.c, {workers} workers, direct descriptors on both sides",
        "note": "" if connections == wanted else f"This machine has room for {connections:,} only.",
        "rows": [row] if row else [],
        "missing": missing,
        "verdicts": [
            check(f"{contender.name}: connections open, 0 failed", f"{wanted:,}",
                  row and row["opened"], f"open, {row['failed'] if row else 0} failed", met),
        ],
    }


def affordable(wanted: int) -> int:
    """As many connections as memory and the system's file table allow, both ends counted."""
    free_kb = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0])
    by_memory = int(free_kb * 1024 * 0.9 / KERNEL_BYTES_PER_CONNECTION)
    by_files = int(Path("/proc/sys/fs/file-max").read_text()) // 2 - 20_000
    return min(wanted, by_memory, by_files)


def warn_of_tracking(connections: int) -> None:
    """Says where a table of tracked connections has no room: those beyond it stall, and fail."""
    folder = Path("/proc/sys/net/netfilter")
    if not (folder / "nf_conntrack_max").exists():
        return
    most, used = (int((folder / f"nf_conntrack_{name}").read_text()) for name in ("max", "count"))
    if most - used < connections:
        wanted = used + connections + 10_000
        say(f"  warning: nf_conntrack_max is {most:,} with {used:,} in use; if a firewall tracks "
            f"connections, those beyond it fail: sudo sysctl -w "
            f"net.netfilter.nf_conntrack_max={wanted}")


def hold_million(contender: Contender, connections: int, workers: int) -> dict:
    work = Work(13, workers=workers)
    server_of = patient(contender, connections)
    with Server(server_of, work, cpu=None) as server:
        server.await_ready()
        if not server.uses_uring():
            raise BenchError("holds no ring: it fell back to epoll")
        empty, threads = server.rss_bytes(), server.threads()
        command = [str(BUILD / "c1m_client"), str(server.port), work.path, str(connections)]
        with Client([*command, str(MILLION_SECONDS_MAX)]) as client:
            opened, failed, seconds = client.await_line("READY", MILLION_SECONDS_MAX)
            say(f"  {opened} open, {failed} failed, {seconds} s")
            time.sleep(2)
            full, cpu = server.rss_bytes(), server.cpu_seconds()
            time.sleep(10)
            cpu = server.cpu_seconds() - cpu
            load = among(server, work)
            client.tell("sweep 20")
            asked, alive, _, sweep_seconds = client.await_line("SWEEP", 120)
            client.tell("quit")
            bye = client.await_line("BYE", 120)
        status = server.stop(60)
    return {
        "name": contender.name,
        "workers": workers,
        "threads": threads,
        "opened": int(opened),
        "failed": int(failed),
        "seconds": float(seconds),
        "empty_bytes": empty,
        "full_bytes": full,
        "per_connection": (full - empty) / max(1, int(opened)),
        "cpu_ms": cpu * 1000,
        "per_second": load.per_second,
        "p50_us": load.p50_us,
        "p99_us": load.p99_us,
        "among_failed": load.failed,
        "swept": int(asked),
        "swept_alive": int(alive),
        "sweep_seconds": float(sweep_seconds),
        "close_seconds": float(bye[0]),
        "exit_status": status,
    }


def among(server: Server, work: Work) -> Load:
    """The rate of 32 busy connections among the idle ones."""
    return Wrk(32).run(server.port, work, 5)


def start(contenders: list[Contender]) -> dict:
    """Time from spawning the process to its first complete answer, its memory then, its size."""
    say("start: to the first response")
    rows, missing, verdicts = [], {}, []
    for contender in contenders:
        row = None
        try:
            row = start_often(contender)
            rows.append(row)
            say(f"  {contender.name}: {row['ms']:.1f} ms, {row['rss_bytes'] / 1e6:.1f} MB")
        except (BenchError, OSError) as error:
            missing[contender.name] = str(error)
            say(f"  {contender.name}: {error}")
        if contender.kind == "gustnado":
            verdicts += start_verdicts(contender.name, row)
    return {
        "kind": "start",
        "title": "Start",
        "how": f"median of {STARTS} starts, one worker, response of 13 bytes",
        "note": "",
        "rows": rows,
        "missing": missing,
        "verdicts": verdicts,
    }


def start_often(contender: Contender) -> dict:
    milliseconds, memory = [], []
    work = Work(13)
    for _ in range(STARTS):
        began = time.monotonic()
        with Server(contender, work, cpu=None) as server:
            server.await_ready()
            milliseconds.append((time.monotonic() - began) * 1000)
            memory.append(server.rss_bytes())
            program = server.command[0]
    path = program if os.path.exists(program) else shutil.which(program) or program
    return {
        "name": contender.name,
        "ms": statistics.median(milliseconds),
        "ms_max": max(milliseconds),
        "rss_bytes": statistics.median(memory),
        "binary_bytes": os.path.getsize(path),
    }


def start_verdicts(name: str, row: dict | None) -> list[dict]:
    limits: list[tuple[str, str, Callable[[dict], float], float, str]] = [
        ("to the first response", "< 20 ms", lambda found: found["ms"], 20, "ms"),
        ("memory", "< 5 MB", lambda found: found["rss_bytes"] / 1e6, 5, "MB"),
        ("stripped binary", "< 7.5 MB", lambda found: found["binary_bytes"] / 1e6, 7.5, "MB"),
    ]
    return [
        check(f"{name}: {what}", reach, row and value(row), unit,
              row is not None and value(row) < most)
        for what, reach, value, most, unit in limits
    ]
