#!/usr/bin/env python3
"""HTTP/2 against other people's clients and suites: h2spec, curl, nghttp, h2load, Go.

  conformance/http2.py --server target/release/gustnado          all that are installed
  conformance/http2.py --server PATH --quick                     h2spec and curl
  conformance/http2.py --server PATH --report PAGE               writes the page, too

Each runs by TLS and in clear. A client that is not installed is skipped, with a line that names it,
and never passes. The last line has the numbers of cases that passed and failed; what fails makes
the exit status 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import certificates
import outcomes
import page
from outcomes import Case, Skipped, expect
from served import HOST, KINDS, MEGABYTE, PAGE, Server

TOOLS = page.ROOT / "target" / "conformance" / "bin"
SITE = """
tls-cert = "p256.chain.pem"
tls-key = "p256.key"
root = "www"
h2c = true
listen = ["https://127.0.0.1:0", "http://127.0.0.2:0"]
[[route]]
path = "/taken"
answer = "taken\\n"
methods = ["GET", "POST"]
"""
CLEAR_HOST = "127.0.0.2"
# Of h2spec in clear: what does not begin as HTTP/2 does is HTTP/1 there, and gets its 400.
NOT_IN_CLEAR = "3.5. HTTP/2 Connection Preface: Sends invalid connection preface"
REQUESTS = 2_000


class Lab:
    """A server, and what its clients need to know of it."""

    def __init__(self, program: Path, files: Path):
        KINDS["http2"] = (SITE, [])
        www = files / "www"
        www.mkdir(exist_ok=True)
        (www / "index.html").write_text(PAGE)
        (www / "1m.bin").write_bytes(MEGABYTE)
        self.files, self.server = files, Server(program, files, "http2", "own")
        found = re.search(r"http://127\.0\.0\.2:(\d+)/", self.server.log())
        self.hosts = {"TLS": HOST, "in clear": CLEAR_HOST}
        self.ports = {"TLS": self.server.port, "in clear": int(found[1]) if found else 0}

    def url(self, way: str, path: str) -> str:
        place = "https://localhost" if way == "TLS" else f"http://{self.hosts[way]}"
        return f"{place}:{self.ports[way]}{path}"


def tool(name: str) -> str:
    """Where a program is; nothing if it is not installed."""
    built = TOOLS / name
    return str(built) if built.exists() else shutil.which(name) or ""


def run(command: list[str], seconds: int = 120) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL)


def by_h2spec(lab: Lab, way: str) -> Iterator[Case]:
    """A case for each of its tests; it ends with a word on how many there are."""
    report = lab.files / "h2spec.xml"
    words = ["-t", "-k"] if way == "TLS" else []
    command = [tool("h2spec"), *words, "-h", lab.hosts[way], "-p", str(lab.ports[way]),
               "-P", "/1m.bin", "-o", "3", "-j", str(report)]
    done = run(command, 300)
    suites = ElementTree.parse(report).iter("testsuite") if report.exists() else []
    count = 0
    for suite in suites:
        for test in suite.iter("testcase"):
            name = f"{suite.get('name')}: {test.get('classname')}"
            wrong = [one.text or "" for kind in ("failure", "error") for one in test.iter(kind)]
            skipped = test.find("skipped") is not None
            count += 1
            yield name, lambda name=name, wrong=wrong, skipped=skipped: of_h2spec(
                name, wrong, skipped, way)
    yield "it has run all of its tests", lambda: expect(count >= 140, done.stdout[-300:])


def of_h2spec(name: str, wrong: list[str], skipped: bool, way: str) -> None:
    if name == NOT_IN_CLEAR and way == "in clear":
        raise Skipped("what does not begin as HTTP/2 does is HTTP/1 in clear, and gets its 400")
    if skipped:
        raise Skipped("by h2spec itself")
    expect(not wrong, " ".join(wrong))


def by_curl(lab: Lab, way: str) -> Iterator[Case]:
    begin = ["curl", "--silent", "--show-error", "--max-time", "20", "--cacert",
             str(lab.files / "root.pem"), "--http2" if way == "TLS" else "--http2-prior-knowledge"]

    def curl(path: str, *words: str) -> bytes:
        done = subprocess.run([*begin, *words, lab.url(way, path)], capture_output=True, timeout=30)
        expect(done.returncode == 0, f"status {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    yield "the version is 2", lambda: expect(
        curl("/", "-o", "/dev/null", "-w", "%{http_version}") == b"2", "another version")
    yield "a page", lambda: expect(curl("/").decode() == PAGE, "another page")
    yield "1 MB down", lambda: expect(curl("/1m.bin") == MEGABYTE, "other bytes")
    yield "a range", lambda: expect(
        curl("/1m.bin", "--range", "1000-1000999") == MEGABYTE[1000:1001000], "other bytes")
    if not outcomes.first_line(["curl", "--version"]).startswith("curl 7."):
        # (The older ones fail if the response is complete before the request is.)
        yield "1 MB up", lambda: expect(
            curl("/taken", "--data-binary", f"@{lab.files / 'www' / '1m.bin'}") == b"taken\n",
            "another answer")
    yield "HEAD", lambda: expect(b"HTTP/2 200" in curl("/", "--head"), "another status")
    if way == "TLS":
        # (In clear, curl 7.88 opens fifty connections, and fails at that with any server.)
        yield "fifty at once", lambda: fifty(lab, way, begin)


def fifty(lab: Lab, way: str, begin: list[str]) -> None:
    urls = [word for _ in range(50) for word in ("-o", "/dev/null", lab.url(way, "/1m.bin"))]
    done = run([*begin, "--parallel", "--parallel-max", "50", "-w",
                "%{http_code} %{http_version} %{size_download}\n", *urls])
    lines = done.stdout.split("\n")[:-1]
    expect(len(lines) == 50 and set(lines) == {"200 2 1048576"}, done.stdout + done.stderr)


def by_nghttp(lab: Lab, way: str) -> Iterator[Case]:
    # (`--continuation` sends a head of 32 KB, which is above the limit.)
    for words in (["-m", "40"], ["-m", "40", "--window-bits=10"], ["--continuation"],
                  ["--hexdump"], ["--expect-continue", "-d", str(lab.files / "www" / "1m.bin")]):
        path = "/taken" if "-d" in words else "/1m.bin"
        yield " ".join(words[:3]), lambda words=words, path=path: nghttp(lab, way, words, path)


def nghttp(lab: Lab, way: str, words: list[str], path: str) -> None:
    done = run(["nghttp", "--stat", "--null-out", "--no-verify-peer", *words, lab.url(way, path)])
    wanted = int(words[words.index("-m") + 1]) if "-m" in words else 1
    # (Its table has a line for each answer, with the status in it.)
    status = "431" if "--continuation" in words else "200"
    count = len(re.findall(rf"^ +\d+ +\+.* {status} ", done.stdout, re.MULTILINE))
    expect(done.returncode == 0 and count == wanted,
           f"{count} of {wanted}: {done.stdout[-300:]} {done.stderr[-200:]}")


def by_h2load(lab: Lab, way: str) -> Iterator[Case]:
    for words in (["-c", "1", "-m", "100"], ["-c", "50", "-m", "10"], ["-c", "10", "-w", "10"],
                  ["-c", "10", "-m", "32", "--header-table-size=0"]):
        yield " ".join(words), lambda words=words: h2load(lab, way, words)


def h2load(lab: Lab, way: str, words: list[str]) -> None:
    path = "/1m.bin" if "-w" in words else "/"
    count = 100 if "-w" in words else REQUESTS
    done = run(["h2load", "-n", str(count), *words, lab.url(way, path)])
    expect(f"{count} succeeded, 0 failed, 0 errored" in done.stdout, done.stdout[-600:])


# name -> its program, how its version is asked for, its cases
CLIENTS = {
    "h2spec": ("h2spec", ["--version"], by_h2spec),
    "curl": ("curl", ["--version"], by_curl),
    "nghttp": ("nghttp", ["--version"], by_nghttp),
    "h2load": ("h2load", ["--version"], by_h2load),
}
QUICK = ["h2spec", "curl"]
HEAD = """# HTTP/2 against other clients

Written by `make conformance-http2`, which runs [conformance/http2.py](../../conformance/README.md).

{date}, commit {commit}.

**{passed:,} cases passed, {failed:,} failed, {skipped:,} were skipped.**

| client | version | way | passed | failed | skipped |
| --- | --- | --- | ---: | ---: | ---: |
"""


def write(path: Path, tally: outcomes.Tally, versions: dict[str, str]) -> None:
    text = HEAD.format(
        date=time.strftime("%Y-%m-%d", time.gmtime()), commit=page.commit(),
        passed=tally.count("passed"), failed=tally.count("failed"), skipped=tally.count("skipped"))
    for client, way in dict.fromkeys((one.client, one.records) for one in tally.outcomes):
        ours = [one.state for one in tally.outcomes if (one.client, one.records) == (client, way)]
        counts = " | ".join(str(ours.count(state)) for state in ("passed", "failed", "skipped"))
        text += f"| {client} | {versions.get(client, '')} | {way} | {counts} |\n"
    skipped = sorted({f"- {one.client}, {one.records}: {one.name}: {one.told}"
                      for one in tally.outcomes if one.state == "skipped"})
    path.write_text(text + "".join(["\nSkipped:\n\n", *(f"{line}\n" for line in skipped)]))


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, metavar="PATH")
    words.add_argument("--quick", action="store_true", help="what takes less than 20 seconds")
    words.add_argument("--report", type=Path, metavar="PAGE")
    asked = words.parse_args()
    if asked.report:
        page.commit()
    os.environ["NO_COLOR"] = "1"
    tally, began, versions = outcomes.Tally(), time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        lab = Lab(asked.server.absolute(), certificates.make(Path(folder)))
        try:
            for name in QUICK if asked.quick else CLIENTS:
                program, ask, cases = CLIENTS[name]
                if not tool(program):
                    tally.missing.append(name)
                    print(f"skipped: {name}", flush=True)
                    continue
                versions[name] = outcomes.first_line([tool(program), *ask])
                for way in lab.ports:
                    outcomes.run(tally, name, way, cases(lab, way))
            outcomes.run(tally, "the server", "both",
                         [("it ends in order and without a panic", lab.server.end)])
        finally:
            lab.server.kill()
    if asked.report:
        write(asked.report, tally, versions)
    passed, failed = tally.count("passed"), tally.count("failed")
    outcomes.say(f"{time.monotonic() - began:.0f} s, {tally.count('skipped')} cases skipped")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed else 1


if __name__ == "__main__":
    sys.exit(main())
