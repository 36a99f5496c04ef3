#!/usr/bin/env python3
"""WebSockets against Autobahn's fuzzing client: every case of its sections 1 to 7, 9, 10, 12 and
13, directly, by TLS, and behind HAProxy and nginx.

  conformance/websocket.py --server PATH --wstest PATH                  all of it, two hours
  conformance/websocket.py --server PATH --wstest PATH --ways plain --cases '1.*,7.*'
  conformance/websocket.py --server PATH --wstest PATH --report PAGE    writes the page, too

`PATH`s are those of the example `websocket` and of `wstest`, which Autobahn's 0.8.2 has for Python
2.7 alone. Everything is on loopback. What is not installed is skipped, and never passes.

With `--results FILE` outcomes are added to those of earlier runs, which the page then shows, too;
with `--ways=` nothing is run, and the page is written of them.
The last line has the numbers of cases that passed and failed in all of them; what fails makes the
exit status 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import autobahn
import certificates
import outcomes
import page
from autobahn import AGENT, SECTIONS, await_port, free_port, in_order, is_good

HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout tunnel 1h
frontend in
    bind 127.0.0.1:{port}
    default_backend out
backend out
    server one 127.0.0.1:{to}{by}
"""
NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{to};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""
HEAD = """# WebSockets against Autobahn

Written by `make conformance-websocket`, which runs
[conformance/websocket.py](../../conformance/README.md): Autobahn's fuzzing client plays each of
its cases to the example `websocket`, which sends messages back. It asks directly, by TLS, behind
HAProxy and nginx, and behind HAProxy that asks the server by HTTP/2 (RFC 8441).

{date}, commit {commit}, Autobahn {version}{proxies}.

**{passed:,} cases passed, {failed:,} failed.** Sections 12 and 13 have 90 and 126 cases; where the
table has fewer, the others were not run.

| way | section | OK | non-strict | informational | failed |
| --- | --- | ---: | ---: | ---: | ---: |
"""


class Ways:
    """Where the client connects to, by the name of the way."""

    NAMES = ("plain", "tls", "haproxy", "nginx", "haproxy-h2")

    def __init__(self, server: Path, folder: Path):
        self.server, self.folder = server, folder

    @contextmanager
    def open(self, way: str) -> Iterator[str]:
        """The URL of a way, while it is there."""
        with ExitStack() as stack:
            is_tls, port = way == "tls", free_port()
            settings = {"GUSTNADO_H2C": "true"}
            if is_tls:
                settings |= {"GUSTNADO_TLS_CERT": str(self.folder / "p256.chain.pem"),
                             "GUSTNADO_TLS_KEY": str(self.folder / "p256.key")}
            self.start(stack, [self.server, f"127.0.0.1:{port}"], port, settings)
            if way.startswith("haproxy"):
                by = " proto h2" if way.endswith("h2") else ""
                config, to, port = self.folder / f"{way}.cfg", port, free_port()
                config.write_text(HAPROXY.format(port=port, to=to, by=by))
                self.start(stack, ["haproxy", "-f", config], port)
            if way == "nginx":
                config, to, port = self.folder / "nginx.conf", port, free_port()
                config.write_text(NGINX.format(port=port, to=to, folder=self.folder))
                self.start(stack, ["nginx", "-p", self.folder, "-c", config], port)
            yield f"{'wss' if is_tls else 'ws'}://127.0.0.1:{port}/echo"

    def start(self, stack: ExitStack, command: list, port: int,
              settings: dict[str, str] | None = None) -> None:
        log = stack.enter_context((self.folder / f"{port}.log").open("w"))
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env=os.environ | (settings or {}))

        def end() -> None:
            # (Killed, nginx would leave its workers behind.)
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        stack.callback(end)
        try:
            await_port(process, str(command[0]), port)
        except SystemExit as error:
            said = (self.folder / f"{port}.log").read_text()
            raise SystemExit(f"{error}: {said[-500:]}") from None

    def missing(self, way: str) -> str:
        """The program that a way needs and that is not there."""
        program = way.split("-")[0]
        needed = program if program in ("haproxy", "nginx") else ""
        return needed if needed and not shutil.which(needed) else ""


def play(wstest: Path, url: str, cases: list[str], folder: Path, seconds: float) -> dict[str, dict]:
    """Returns what the client says of each case that it has come to."""
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    servers = [{"agent": AGENT, "url": url, "options": {"version": 18}}]
    command = autobahn.command(wstest, "fuzzingclient", folder, cases, {"servers": servers})
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds, cwd=folder)
    index = reports / "index.json"
    if done.returncode or not index.exists():
        raise SystemExit(f"wstest ends with {done.returncode}: {done.stderr[-500:]}")
    told = json.loads(index.read_text())[AGENT]
    return {case: {key: of[key] for key in ("behavior", "behaviorClose", "duration")}
            for case, of in told.items()}


def write(path: Path, results: dict[str, dict[str, dict]], version: str) -> None:
    cases = [case for found in results.values() for case in found.values()]
    failed = sum(not is_good(case) for case in cases)
    told = [outcomes.first_line(["haproxy", "-v"]).split(" 20")[0],
            # (nginx tells its version on standard error.)
            outcomes.first_line(["nginx", "-v"]).removeprefix("nginx version: ")]
    text = HEAD.format(date=time.strftime("%Y-%m-%d", time.gmtime()), commit=page.commit(),
                       version=version, proxies="".join(f", {one}" for one in told if one),
                       passed=len(cases) - failed, failed=failed)
    for way, found in results.items():
        text += autobahn.rows(found, f"{way} | ")
    for way, found in results.items():
        for title, state in (("non-strict", "NON-STRICT"), ("informational", "INFORMATIONAL")):
            text += autobahn.named(found, f"{way}, {title}", state)
        names = [name for name, case in in_order(found) if not is_good(case)]
        text += f"\n{way}, failed: {', '.join(names)}.\n" if names else ""
    path.write_text(text)


def run_all(asked: argparse.Namespace, results: dict[str, dict[str, dict]]) -> None:
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        certificates.make(folder)
        ways = Ways(asked.server.absolute(), folder)
        for way in filter(None, asked.ways.split(",")):
            if ways.missing(way):
                print(f"skipped: {way}: {ways.missing(way)} is not installed", flush=True)
                continue
            began = time.monotonic()
            with ways.open(way) as url:
                found = play(asked.wstest.absolute(), url, asked.cases.split(","), folder,
                             asked.time)
            results.setdefault(way, {}).update(found)
            # (A way takes ten minutes: one that fails must not cost those before it.)
            if asked.results:
                asked.results.write_text(json.dumps(results))
            for case, of in in_order(found):
                if not is_good(of):
                    print(f"failed: {way}: {case}: {of['behavior']}, close {of['behaviorClose']}")
            outcomes.say(f"{way}: {len(found)} cases, {time.monotonic() - began:.0f} s")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, help="the example `websocket`")
    words.add_argument("--wstest", type=Path, required=True, help="Autobahn's wstest")
    words.add_argument("--ways", default=",".join(Ways.NAMES), help="which ones [all]")
    words.add_argument("--cases", default=",".join(SECTIONS), help="which ones [all]")
    words.add_argument("--time", type=float, default=7200, help="seconds for a way [7200]")
    words.add_argument("--results", type=Path, help="a file that outcomes are added to")
    words.add_argument("--report", type=Path, metavar="PAGE", help="the page that is written")
    asked = words.parse_args()
    if not asked.wstest.exists():
        print("skipped: Autobahn is not installed")
        return 0
    if asked.report:
        page.commit()
    kept = asked.results
    results = json.loads(kept.read_text()) if kept and kept.exists() else {}
    run_all(asked, results)
    if asked.report:
        version = autobahn.version(asked.wstest, "?")
        write(asked.report, results, version)
    cases = [case for found in results.values() for case in found.values()]
    failed = sum(not is_good(case) for case in cases)
    print(f"{len(cases) - failed:,} passed, {failed:,} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
