"""What can be counted exactly: user-space instructions and system calls per request.

CPU time cannot resolve 5 % on a shared machine; these two can, and so they are the gate in CI.
"""

import contextlib
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from contenders import HOST, Contender, Server, Work, send_signal
from load import Wrk
from machine import BUILD, BenchError, say

CONNECTIONS = 64
FEW_ROUNDS = 10
MANY_ROUNDS = 40
VALGRIND_START_SECONDS = 60
PIPELINED = 16

# As a browser sends it, about 560 bytes.
BROWSER_FIELDS = (
    "Host: localhost:8080\r\n"
    "Connection: keep-alive\r\n"
    'sec-ch-ua: "Chromium";v="124", "Google Chrome";v="124", "Not-A.Brand";v="99"\r\n'
    "sec-ch-ua-mobile: ?0\r\n"
    'sec-ch-ua-platform: "Linux"\r\n'
    "Upgrade-Insecure-Requests: 1\r\n"
    "Referer: http://localhost:8080/documents/2026/index.html?chapter=2\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en;q=0.9\r\n\r\n"
)
PLAIN_FIELDS = "Host: loopback\r\n\r\n"  # makes a head of 40 bytes with /13.txt
# head -> its fields, how many requests leave in one send, and the limit of the gate
HEADS = {
    "plain": (PLAIN_FIELDS, 1, 1500),
    "pipelined x16": (PLAIN_FIELDS, PIPELINED, 800),
    "browser": (BROWSER_FIELDS, 1, 3400),
}
# A ring takes as many requests with one call as have come meanwhile. A generator that is short of
# CPU sends fewer, so a bad run only shows more calls per request: the least of these runs counts.
STRACE_RUNS = 3
# What a turn of the server costs is shared by the requests that it finds, and how many that are is
# for the scheduler of the machine: the same binary shows 1,645 and 1,701. The least of these runs
# counts, too.
CALLGRIND_RUNS = 3
SYSTEM_CALLS_MAX = {"epoll": 2.1, "uring": 0.1}
GATE_SLACK = {"epoll": 1.0, "uring": 3.0}
INSTRUCTIONS_SLACK = 1.05


# Bytes of the stripped command with everything in it: wanted, and where the gate fails. AWS-LC is
# three quarters of what is too much (docs/results/not-reached.md).
COMMAND_BYTES_MAX = 7_500_000
# Zstandard's encoder is 0.35 MB of it, and Brotli's, for `gustnado compress` alone, about 1.1 MB
# (the cargo feature `brotli`). Markdown below listings is 0.3 MB, by the names of characters.
COMMAND_BYTES_GATE = 14_900_000
# The same of a command that serves by HTTPS and does nothing else, as the container image has it.
SERVER_BYTES_MAX = 5_500_000
SERVER_BYTES_GATE = 10_300_000


def size(program: str, without_lab: str | None) -> dict:
    """The command without its symbols: with everything, and as a server alone."""
    say("size: bytes of the stripped command")
    rows, verdicts = [], []
    for name, path, most, gate in [
        ("gustnado", program, COMMAND_BYTES_MAX, COMMAND_BYTES_GATE),
        ("gustnado without lab and acme", without_lab, SERVER_BYTES_MAX, SERVER_BYTES_GATE),
    ]:
        if path is None:
            continue
        stripped = BUILD / "stripped"
        subprocess.run(["strip", "-o", str(stripped), path], check=True)
        found = stripped.stat().st_size
        say(f"  {name} {found:,}")
        rows.append({"name": name, "bytes": found})
        verdicts.append({
            "measure": f"{name}: bytes of the stripped command",
            "reach": f"<= {most:,}",
            "found": f"{found:,}",
            "met": found <= most,
            "passes": found <= gate,
        })
    return {
        "kind": "size",
        "title": "Size of the command",
        "how": "the profiling build, stripped: the release code, with everything and with TLS",
        "note": "",
        "rows": rows,
        "missing": {},
        "verdicts": verdicts,
    }


def instructions(contenders: list[Contender]) -> dict:
    """User-space instructions per request, by callgrind."""
    say("instructions: user-space instructions per request (callgrind)")
    rows, missing, verdicts = [], {}, []
    for contender in contenders:
        row = {"name": contender.name}
        for head, (_, _, limit) in HEADS.items():
            try:
                row[head] = instructions_of(contender, head)
                say(f"  {contender.name} {head}: {row[head]:.0f}")
            except (BenchError, OSError) as error:
                missing[f"{contender.name}, {head}"] = str(error)
                say(f"  {contender.name} {head}: {error}")
            if contender.kind == "gustnado":
                verdicts.append(instruction_verdict(row, head, limit))
        if len(row) > 1:
            rows.append(row)
    return {
        "kind": "instructions",
        "title": "User-space instructions per request",
        "how": f"callgrind, {CONNECTIONS} connections, difference of {MANY_ROUNDS} and "
        f"{FEW_ROUNDS} rounds, on epoll",
        "note": "Counted, not timed. On io_uring nothing is counted: while one thread waits in "
        "io_uring_enter, valgrind lets no other thread of the process run.",
        "rows": rows,
        "missing": missing,
        "verdicts": verdicts,
    }


def instruction_verdict(row: dict, head: str, limit: int) -> dict:
    found = row.get(head)
    return {
        "measure": f"{row['name']}: instructions per request, {head} head",
        "reach": f"<= {limit:,}",
        "found": "not measured" if found is None else f"{found:,.0f}",
        "met": found is not None and found <= limit,
        # A call inlined or not moves the count by some 40; a real regression by more.
        "passes": found is not None and found <= limit * INSTRUCTIONS_SLACK,
    }


def instructions_of(contender: Contender, head: str) -> float:
    return min(instructions_once(contender, head) for _ in range(CALLGRIND_RUNS))


def instructions_once(contender: Contender, head: str) -> float:
    fields, batch, _ = HEADS[head]
    few = count_instructions(contender, fields, batch, FEW_ROUNDS)
    many = count_instructions(contender, fields, batch, MANY_ROUNDS)
    return (many - few) / ((MANY_ROUNDS - FEW_ROUNDS) * CONNECTIONS * batch)


def count_instructions(contender: Contender, fields: str, batch: int, rounds: int) -> int:
    """All instructions of one server's life, in which every connection asks `rounds` times."""
    work = Work(13)
    out = BUILD / f"callgrind.{contender.name}.out"
    out.unlink(missing_ok=True)
    before = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}")
    with Server(contender, work, before=before) as server:
        server.await_ready(VALGRIND_START_SECONDS)
        request = f"GET {work.path} HTTP/1.1\r\n{fields}".encode() * batch
        ask_in_rounds(server.port, request, batch, rounds)
        send_signal(server.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(20)
    if not out.exists():
        raise BenchError("callgrind wrote nothing: the server could only be killed")
    totals = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)
    if not totals:
        raise BenchError(f"{out.name} has no totals")
    return int(totals[1])


def ask_in_rounds(port: int, request: bytes, batch: int, rounds: int) -> None:
    links = [socket.create_connection((HOST, port), timeout=60) for _ in range(CONNECTIONS)]
    try:
        answer_bytes = 0
        for _ in range(rounds):
            for link in links:
                link.sendall(request)
            for link in links:
                answer_bytes = answer_bytes or first_answer_bytes(link)
                read_exactly(link, answer_bytes * batch)
    finally:
        for link in links:
            link.close()


def first_answer_bytes(link: socket.socket) -> int:
    """How long one answer is, found by peeking at the first: all the others are equally long."""
    while True:
        data = link.recv(65536, socket.MSG_PEEK)
        if not data:
            raise BenchError("connection ended at the first answer")
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            return end + 4 + 13


def read_exactly(link: socket.socket, count: int) -> None:
    while count:
        piece = link.recv(count)
        if not piece:
            raise BenchError("connection ended in the middle of the answers")
        count -= len(piece)


def system_calls(contenders: list[Contender], seconds: float) -> dict:
    """System calls per request by `strace -c -f`, attached while wrk asks on 64 connections."""
    say("syscalls: system calls per request (strace)")
    rows, missing, verdicts = [], {}, []
    for contender in contenders:
        limit = SYSTEM_CALLS_MAX[contender.io]
        row: dict = {"name": contender.name}
        try:
            runs = [count_system_calls(contender, seconds) for _ in range(STRACE_RUNS)]
            row |= min(runs, key=lambda run: run["per_request"])
            rows.append(row)
            say(f"  {contender.name}: {row['per_request']:.3f}")
        except (BenchError, OSError) as error:
            missing[contender.name] = str(error)
            say(f"  {contender.name}: {error}")
        if contender.kind == "gustnado":
            found = row.get("per_request")
            verdicts.append({
                "measure": f"{contender.name}: system calls per request",
                "reach": f"<= {limit}",
                "found": "not measured" if found is None else f"{found:.3f}",
                "met": found is not None and found <= limit,
                # The gate allows for a generator that gives a ring little to batch: an operation
                # too many per request would still be several times this.
                "passes": found is not None and found <= limit * GATE_SLACK[contender.io],
            })
    return {
        "kind": "system_calls",
        "title": "System calls per request",
        "how": f"`strace -c -f` attached, `wrk -t1 -c{CONNECTIONS}`, 13-byte response; "
        f"the least of {STRACE_RUNS} runs",
        "note": "On io_uring the figure falls as more requests wait when the server looks: a "
        "generator that is short of CPU raises it. Compare it with null-uring's.",
        "rows": rows,
        "missing": missing,
        "verdicts": verdicts,
    }


def count_system_calls(contender: Contender, seconds: float) -> dict:
    work = Work(13)
    out = BUILD / f"strace.{contender.name.replace(' ', '-')}.txt"
    with Server(contender, work) as server:
        server.await_ready()
        if contender.io == "uring" and not server.uses_uring():
            raise BenchError("holds no ring: it fell back to epoll")
        who = [word for pid in server.pids() for word in ("-p", str(pid))]
        tracer = subprocess.Popen(
            ["strace", "-c", "-f", "-qq", "-o", str(out), *who], stdin=subprocess.DEVNULL
        )
        try:
            time.sleep(0.7)  # until it is attached
            load = Wrk(CONNECTIONS).run(server.port, work, seconds)
        finally:
            send_signal(tracer.pid, signal.SIGINT)
            try:
                tracer.wait(10)
            except subprocess.TimeoutExpired:
                tracer.kill()
                tracer.wait(5)
    calls = strace_counts(out)
    if not calls or load.failed:
        raise BenchError(f"strace counted nothing, or {load.failed} requests failed")
    each = {name: count / load.requests for name, count in calls.items()}
    named = sorted(each.items(), key=lambda pair: -pair[1])
    return {
        "per_request": sum(each.values()),
        "requests": load.requests,
        "calls": {name: round(count, 4) for name, count in named if count >= 0.0005},
    }


def strace_counts(out: Path) -> dict[str, int]:
    """The calls column of strace's table, by name."""
    calls = {}
    for line in out.read_text().splitlines():
        words = line.split()
        if len(words) >= 5 and words[0][0].isdigit() and words[-1] != "total":
            calls[words[-1]] = int(words[3])
    return calls
