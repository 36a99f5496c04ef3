"""Go's crypto/tls, by the program in `go`: versions, groups, sessions, certificates, bodies."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case, expect, first_line
from served import HOST, Lab

NAME = "Go"
SOURCE = Path(__file__).resolve().parent / "go"
# What each case of the program is called here.
CASES = {
    "page": "a page", "names": "four certificates by name", "down": "1 MB down, five times",
    "up": "1 MB up, five times", "many": "500 requests on one connection",
    "resumed": "sessions resumed",
    "half-closed": "a client that has closed its direction gets 1 MB and the end",
    "x25519": "X25519", "p256": "P-256", "p384": "P-384",
    "good": "a client's certificate is required: good", "foreign": "foreign is refused",
    "revoked": "revoked is refused", "none": "none is refused",
}


def version() -> str:
    return first_line(["go", "version"])


def build(lab: Lab) -> Path:
    program = lab.files / "go-client"
    if not program.exists():
        # Nothing is fetched: it needs the standard library alone.
        settings = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        done = subprocess.run(["go", "build", "-o", str(program), "."], cwd=SOURCE,
                              env={**os.environ, **settings}, capture_output=True, text=True,
                              timeout=300)
        expect(done.returncode == 0, f"it does not compile: {done.stderr}")
    return program


def runs(lab: Lab, name: str) -> None:
    address = f"{HOST}:{lab.server('sites').port}"
    done = subprocess.run([str(build(lab)), address, str(lab.files), name], capture_output=True,
                          text=True, timeout=40)
    expect(done.returncode == 0, done.stderr.strip() or f"status {done.returncode}")


def cases(lab: Lab) -> Iterator[Case]:
    for told in ("1.2", "1.3"):
        for name, meaning in CASES.items():
            yield f"TLS {told}: {meaning}", lambda word=f"{name}/{told}": runs(lab, word)
    yield "TLS 1.3: X25519MLKEM768", lambda: runs(lab, "mlkem/1.3")
    yield "its own settings: TLS 1.3 and X25519MLKEM768", lambda: runs(lab, "usual/")
    yield "TLS 1.0 and 1.1 are refused", lambda: runs(lab, "old/")
