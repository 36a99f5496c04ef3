"""NSS: `tstclnt`, the client of Firefox's library, by versions, groups, sessions and names."""

import subprocess
from collections.abc import Iterator

from outcomes import Case, expect, first_line
from served import HOST, Lab

NAME = "NSS"
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
VERSIONS = {"TLS 1.2": "tls1.2:tls1.2", "TLS 1.3": "tls1.3:tls1.3"}
GROUPS = ["x25519", "P256", "P384"]


def version() -> str:
    if first_line(["sh", "-c", "command -v tstclnt certutil"]) == "":
        return ""
    words = ["dpkg-query", "-W", "-f", "tstclnt of NSS ${Version}", "libnss3-tools"]
    return first_line(words) or "tstclnt"


def database(lab: Lab) -> str:
    """A folder with the authority that is trusted, made at the first call."""
    folder = lab.files / "nss"
    if not folder.exists():
        folder.mkdir()
        common = ["certutil", "-d", f"sql:{folder}"]
        subprocess.run([*common, "-N", "--empty-password"], check=True, capture_output=True)
        subprocess.run([*common, "-A", "-n", "root", "-t", "C,,", "-i", lab.file("root.pem")],
                       check=True, capture_output=True)
    return f"sql:{folder}"


def run(lab: Lab, versions: str, *words: str, name: str = "localhost") -> tuple[int, bytes]:
    command = ["tstclnt", "-4", "-h", HOST, "-p", str(lab.server("sites").port), "-a", name, "-d",
               database(lab), "-V", versions, "-A", lab.file("ask"), *words]
    (lab.files / "ask").write_bytes(ASK)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
    return done.returncode, done.stdout + done.stderr


def served(lab: Lab, versions: str, *words: str, told: bytes = b"", name: str = "localhost"
           ) -> None:
    status, text = run(lab, versions, *words, name=name)
    expect(b"The page is here." in text, f"{status}: {text[-400:]}")
    expect(told in text, f"no {told}: {text[-800:]}")


def refused(lab: Lab, versions: str, *words: str) -> None:
    status, text = run(lab, versions, *words)
    expect(status != 0 and b"HTTP/1.1" not in text, "it is served")


def cases(lab: Lab) -> Iterator[Case]:
    for told, versions in VERSIONS.items():
        yield told, lambda v=versions: served(lab, v)
        for group in GROUPS:
            yield f"{told}, {group}", lambda v=versions, group=group: served(
                lab, v, "-I", group, name="rsa.test" if group == "x25519" else "localhost")
        for name in ("p384.test", "rsa.test"):
            yield f"{told}, the certificate of {name}", lambda v=versions, name=name: served(
                lab, v, name=name)
        yield f"{told}, the extended master secret and tickets", lambda v=versions: served(
            lab, v, "-G", "-u")
        yield f"{told}, a status is asked for", lambda v=versions: served(lab, v, "-T")
        yield f"{told}, 5 connections resume a session", lambda v=versions: several(lab, v)
    yield "TLS 1.1 is refused", lambda: refused(lab, "tls1.1:tls1.1")
    yield "TLS 1.0 to 1.3", lambda: served(lab, "tls1.0:tls1.3")
    yield "a fallback to TLS 1.2 is refused", lambda: refused(lab, VERSIONS["TLS 1.2"], "-K")
    yield "early data is offered with nothing to resume", lambda: served(
        lab, VERSIONS["TLS 1.3"], "-Z")


def several(lab: Lab, versions: str) -> None:
    server = lab.server("sites")
    before = server.counters()
    served(lab, versions, "-u", "-L", "5")
    server.moved(before, "handshakes", 5)
    server.moved(before, "handshakes_resumed", 4)
