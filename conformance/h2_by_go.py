"""Go's net/http and golang.org/x/net/http2, by the program in `go-http2`."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from h2_lab import Lab, succeeds
from outcomes import Case, expect, first_line

SOURCE = Path(__file__).resolve().parent / "go-http2"
# The cases of the program: what each is called here, and the server that it needs.
CASES = {
    "page": ("a page", "http2"), "head": ("HEAD", "http2"),
    "down": ("20 times 1 MB down at once", "http2"), "up": ("20 times 1 MB up at once", "http2"),
    "many": ("500 requests at once on one connection", "http2"),
    "ping": ("its PINGs are answered", "http2"),
    "goaway": ("1,000 requests on connections of 50 each: none is lost", "short"),
    "echo": ("8 MB both ways, four times at once", "program"),
    "streams": ("100 pieces, each once the one before has come back", "program"),
    "trailers": ("trailers both ways", "program"), "hints": ("early hints", "program"),
    "continue": ("a body that waits for 100", "program"),
    "refused": ("a body that is not asked for", "program"),
    "cancelled": ("20 requests cancelled, and the connection goes on", "program"),
}


def version() -> str:
    return first_line(["go", "version"])


def build(lab: Lab) -> Path:
    program = lab.files / "go-http2"
    if not program.exists():
        done = subprocess.run(["go", "build", "-o", str(program), "."], cwd=SOURCE,
                              env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
                              capture_output=True, text=True, timeout=300)
        expect(done.returncode == 0, f"it does not compile: {done.stderr}")
    return program


def cases(lab: Lab, way: str) -> Iterator[Case]:
    for name, (meaning, kind) in CASES.items():
        yield meaning, lambda name=name, kind=kind: succeeds(
            [str(build(lab)), lab.origin(way, kind), str(lab.files), name])
    yield "50 requests under way when the server ends", lambda: drained(lab, way)
    if way == "TLS":
        yield "a client that coalesces gets 421, and is served on a connection of its own", (
            lambda: coalesced(lab))


def drained(lab: Lab, way: str) -> None:
    command = [str(build(lab)), lab.origin(way, "program"), str(lab.files), "drained"]
    server = lab.servers.pop("program")
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        expect(client.stdout.readline() == "under way\n", "it has ended before")
        server.end()
        _, told = client.communicate(timeout=20)
        expect(client.returncode == 0, told)
    finally:
        client.kill()
        server.kill()


def coalesced(lab: Lab) -> None:
    before = lab.server("sites").counters()
    succeeds([str(build(lab)), lab.origin("TLS", "sites"), str(lab.files), "coalesced"])
    after = lab.server("sites").counters()
    grown = {name: after[name] - before[name] for name in ("handshakes", "answers_4xx")}
    expect(grown == {"handshakes": 2, "answers_4xx": 1}, f"{grown}")
