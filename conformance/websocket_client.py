#!/usr/bin/env python3
"""The WebSocket client against Autobahn's fuzzing server: every case of its sections 1 to 7, 9, 10,
12 and 13.

  websocket_client.py --program PATH --wstest PATH                  all cases, some minutes
  websocket_client.py --program PATH --wstest PATH --cases '1.*,7.*'
  websocket_client.py --program PATH --wstest PATH --report PAGE    writes the page, too
  websocket_client.py ... --cases '12.1.*' --results FILE           gathers several runs

`PATH`s are those of the example `autobahn` and of `wstest`, which Autobahn's 0.8.2 has for
Python 2.7 alone. Everything is on loopback. Ends with a line `N passed, N failed`; what fails makes
the exit status 1.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import autobahn
import page
from autobahn import AGENT, SECTIONS, await_port, free_port, in_order, is_good

HEAD = """# The WebSocket client against Autobahn

Written by `make conformance-websocket-client`, which runs
[conformance/websocket_client.py](../../conformance/README.md): Autobahn's fuzzing server plays
each of its cases to the [WebSocket client](../websocket.md#a-client), which echoes.

{date}, commit {commit}, {version}.

**{passed:,} cases passed, {failed:,} failed.**

| section | OK | non-strict | informational | failed |
| --- | ---: | ---: | ---: | ---: |
"""


def update_reports(port: int) -> None:
    """Makes the server write what it has, as a client does at its end."""
    with socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall(f"GET /updateReports?agent={AGENT} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        # It closes without more ado.
        with contextlib.suppress(ConnectionResetError):
            while one.recv(4096):
                pass


def run(asked: argparse.Namespace, folder: Path) -> dict[str, dict]:
    """Returns what the server says of each case."""
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    command = autobahn.command(asked.wstest, "fuzzingserver", folder, asked.cases.split(","),
                               {"url": url, "webport": 0})
    with (folder / "wstest.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    is_cut = False
    try:
        await_port(server, "wstest", port)
        try:
            done = subprocess.run([str(asked.program), url, AGENT], timeout=asked.time,
                                  check=False)
            if done.returncode != 0:
                raise SystemExit(f"{asked.program} ends with {done.returncode}")
        except subprocess.TimeoutExpired:
            print(f"not all cases were run within {asked.time:.0f} s")
            update_reports(port)
            is_cut = True
    finally:
        server.kill()
        server.wait()
    found = json.loads((folder / "reports" / "index.json").read_text())[AGENT]
    if is_cut:
        # The case that was under way is none that has failed.
        del found[in_order(found)[-1][0]]
    return found


def write(path: Path, found: dict[str, dict], version: str) -> None:
    failed = sum(not is_good(case) for case in found.values())
    text = HEAD.format(date=time.strftime("%Y-%m-%d", time.gmtime()), commit=page.commit(),
                       version=version, passed=len(found) - failed, failed=failed)
    text += autobahn.rows(found)
    for title, state in (("Non-strict", "NON-STRICT"), ("Informational", "INFORMATIONAL")):
        text += autobahn.named(found, title, state)
    path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True, help="the example `autobahn`")
    parser.add_argument("--wstest", type=Path, required=True, help="Autobahn's wstest")
    parser.add_argument("--cases", default=",".join(SECTIONS), help="which ones [all]")
    parser.add_argument("--time", type=float, default=3600, help="seconds for all [3600]")
    parser.add_argument("--results", type=Path, help="where the outcomes of several runs gather")
    parser.add_argument("--report", type=Path, help="the page that is written")
    asked = parser.parse_args()
    asked.program, asked.wstest = asked.program.absolute(), asked.wstest.absolute()
    if not asked.wstest.exists():
        print("skipped: Autobahn is not installed")
        return 0
    version = autobahn.version(asked.wstest, "of unknown version")
    with tempfile.TemporaryDirectory() as folder:
        found = run(asked, Path(folder))
    if asked.results:
        known = json.loads(asked.results.read_text()) if asked.results.exists() else {}
        found = known | found
        asked.results.write_text(json.dumps(found))
    for name, case in in_order(found):
        if not is_good(case):
            print(f"failed: {name}: {case['behavior']}, close {case['behaviorClose']}")
    failed = sum(not is_good(case) for case in found.values())
    if asked.report:
        write(asked.report, found, f"Autobahn {version}")
    print(f"{len(found) - failed:,} passed, {failed:,} failed")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
