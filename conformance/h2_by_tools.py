"""h2spec, curl, nghttp and h2load."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import outcomes
from h2_lab import Lab, host, run, tool
from outcomes import Case, Skipped, expect
from served import MEGABYTE, PAGE

# Of h2spec in clear: what does not begin as HTTP/2 does is HTTP/1 there, and gets its 400.
NOT_IN_CLEAR = "3.5. HTTP/2 Connection Preface: Sends invalid connection preface"
REQUESTS = 2_000


def by_h2spec(lab: Lab, way: str) -> Iterator[Case]:
    """A case for each of its tests; it ends with a word on how many there are."""
    report = lab.files / "h2spec.xml"
    words = ["-t", "-k"] if way == "TLS" else []
    command = [tool("h2spec"), *words, "-h", host(way), "-p", str(lab.port(way)),
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
             lab.file("root.pem"), "--http2" if way == "TLS" else "--http2-prior-knowledge"]

    def curl(path: str, *words: str) -> bytes:
        command = [*begin, *words, lab.origin(way) + path]
        done = subprocess.run(command, capture_output=True, timeout=30)
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
            curl("/taken", "--data-binary", f"@{lab.file('www/1m.bin')}") == b"taken\n",
            "another answer")
    yield "HEAD", lambda: expect(b"HTTP/2 200" in curl("/", "--head"), "another status")
    if way == "TLS":
        # (In clear, curl 7.88 opens fifty connections, and fails at that with any server.)
        yield "fifty at once", lambda: fifty(lab, way, begin)


def fifty(lab: Lab, way: str, begin: list[str]) -> None:
    url = lab.origin(way) + "/1m.bin"
    urls = [word for _ in range(50) for word in ("-o", "/dev/null", url)]
    done = run([*begin, "--parallel", "--parallel-max", "50", "-w",
                "%{http_code} %{http_version} %{size_download}\n", *urls])
    lines = done.stdout.split("\n")[:-1]
    expect(len(lines) == 50 and set(lines) == {"200 2 1048576"}, done.stdout + done.stderr)


def by_nghttp(lab: Lab, way: str) -> Iterator[Case]:
    # (`--continuation` sends a head of 32 KB, which is above the limit.)
    for words in (["-m", "40"], ["-m", "40", "--window-bits=10"], ["--continuation"],
                  ["--hexdump"], ["--expect-continue", "-d", lab.file("www/1m.bin")]):
        path = "/taken" if "-d" in words else "/1m.bin"
        # (No name of this run's folder on the page.)
        name = " ".join(word for word in words if "/" not in word)
        yield name, lambda words=words, path=path: nghttp(lab, way, words, path)


def nghttp(lab: Lab, way: str, words: list[str], path: str) -> None:
    begin = ["nghttp", "--stat", "--null-out", "--no-verify-peer"]
    done = run([*begin, *words, lab.origin(way) + path])
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
    done = run(["h2load", "-n", str(count), *words, lab.origin(way) + path])
    expect(f"{count} succeeded, 0 failed, 0 errored" in done.stdout, done.stdout[-600:])
