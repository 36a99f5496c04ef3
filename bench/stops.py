#!/usr/bin/env python3
"""Who is lost when a server ends under clients that come with a new connection for each request.

    bench/stops.py --program target/release/gustnado --stops 12 --report

Each stop starts a server, loads it with clients that ask once per connection, sends TERM, and waits
for the end. A request is lost if its connection was made and no whole response came. Refused
connections are not lost: their clients know at once that nobody is there. The longest connect() is
taken over all clients, refused ones included.

Loopback only; it ends what it has started, by its process id, and nothing else.
"""

import argparse
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time

import machine

LOAD_SECONDS = 0.5
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def client(port, until, results):
    """Asks once per connection, until it is refused. Tells what it has met."""
    answered, lost, longest = 0, [], 0.0
    while time.monotonic() < until:
        began = time.monotonic()
        stream = socket.socket()
        stream.settimeout(10)
        try:
            stream.connect(("127.0.0.1", port))
        except OSError as error:
            longest = max(longest, time.monotonic() - began)
            stream.close()
            if isinstance(error, ConnectionRefusedError):
                break
            lost.append(f"connect: {error!r}")
            continue
        longest = max(longest, time.monotonic() - began)
        try:
            stream.sendall(REQUEST)
            if whole(stream):
                answered += 1
            else:
                lost.append("closed")
        except OSError as error:
            lost.append(repr(error))
        stream.close()
    results.put((answered, lost, longest))


def whole(stream):
    """Reads one response; whether all of it came."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = stream.recv(65536)
        if not piece:
            return False
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                  if line.startswith(b"content-length:"))
    while len(body) < length:
        piece = stream.recv(65536)
        if not piece:
            return False
        body += piece
    return head.startswith(b"HTTP/1.1 200 ")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until_served(port):
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit("the server does not listen")


def stop_once(command, clients):
    """One server, from its start to its end under load."""
    port = free_port()
    server = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_until_served(port)
        results = multiprocessing.Queue()
        until = time.monotonic() + LOAD_SECONDS + 20
        loads = [multiprocessing.Process(target=client, args=(port, until, results))
                 for _ in range(clients)]
        for load in loads:
            load.start()
        time.sleep(LOAD_SECONDS)
        server.send_signal(signal.SIGTERM)
        began = time.monotonic()
        took = wait_for(server, began)
        code = server.wait()
        told = [results.get(timeout=30) for _ in loads]
        for load in loads:
            load.join()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    answered = sum(one[0] for one in told)
    lost = [one for told_by in told for one in told_by[1]]
    return answered, lost, max(one[2] for one in told), took, code


def wait_for(server, began):
    """Waits for a process, and says how long that took. (`wait` with a limit looks too seldom.)"""
    process = os.pidfd_open(server.pid)
    try:
        if not select.select([process], [], [], 30)[0]:
            server.kill()
            raise SystemExit("the server does not end")
        return time.monotonic() - began
    finally:
        os.close(process)


def idle_once(command):
    """How long a server takes to end that nobody asks."""
    port = free_port()
    server = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    wait_until_served(port)
    time.sleep(0.3)
    server.send_signal(signal.SIGTERM)
    return wait_for(server, time.monotonic())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR") or "target"
    parser.add_argument("--program", default=f"{target}/release/gustnado")
    parser.add_argument("--stops", type=int, default=12)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="write docs/results/stops.md")
    parser.add_argument("--publish", action="store_true", help="also over another machine's page")
    given = parser.parse_args()
    rows, worst = [], []
    for io in ("uring", "epoll"):
        for deferred in ("true", "false"):
            command = [given.program, "--io", io, "--workers", str(given.workers),
                       f"--defer-accept={deferred}"]
            answered, lost, longest, took = 0, [], 0.0, []
            for _ in range(given.stops):
                one = stop_once(command, given.clients)
                answered += one[0]
                lost += one[1]
                longest = max(longest, one[2])
                took.append(one[3])
                if one[4] != 0:
                    lost.append(f"exit code {one[4]}")
            idle = sorted(idle_once(command) for _ in range(5))[2]
            row = (io, deferred, answered, len(lost), longest * 1e3, max(took) * 1e3, idle * 1e3)
            print(*row, lost[:5], flush=True)
            rows.append(row)
            worst += lost
    if given.report:
        write(given, rows)
    return 1 if len(worst) > 4 else 0


def write(given, rows):
    about = machine.describe()
    lines = [
        "# Stops under load",
        "",
        f"`bench/stops.py`, {about['date']}, commit {about['commit']}, "
        f"Linux {about['kernel']}, {about['cpus']}.",
        "",
        f"{given.stops} stops (TERM) for each row, under {given.clients} clients with a new "
        f"connection for each request; {given.workers} workers. A request is lost if its "
        "connection was made and no whole response came.",
        "",
        "| backend | deferred accept | answered | lost | longest connect() | longest stop | "
        "stop of an idle server |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = {"uring": "io_uring", "epoll": "epoll"}
    for io, deferred, answered, lost, longest, took, idle in rows:
        lines.append(f"| {names[io]} | {deferred} | {answered} | {lost} | "
                     f"{longest:.1f} ms | {took:.0f} ms | {idle:.0f} ms |")
    machine.page("stops.md", about, given.publish).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
