"""curl: versions, certificates, bodies of 1 MB, and hundreds of requests on one connection."""

import subprocess
from collections.abc import Iterator

from outcomes import Case, expect, first_line
from served import HOST, MEGABYTE, Lab

NAME = "curl"
REQUESTS = 300


def version() -> str:
    return " ".join(first_line(["curl", "--version"]).split()[:2])


def curl(lab: Lab, kind: str, path: str, *words: str, name: str = "localhost") -> bytes:
    """What it prints; its exit status is 0 and nothing else is taken."""
    return run(lab, kind, path, *words, name=name, status=0).stdout


def run(lab: Lab, kind: str, path: str, *words: str, name: str = "localhost",
        status: int | None = None) -> subprocess.CompletedProcess:
    port = lab.server(kind).port
    command = ["curl", "--silent", "--show-error", "--max-time", "20", "--cacert",
               lab.file("root.pem"), "--resolve", f"{name}:{port}:{HOST}", *words,
               f"https://{name}:{port}{path}"]
    done = subprocess.run(command, capture_output=True, timeout=30)
    if status is not None:
        expect(done.returncode == status, f"status {done.returncode}: {done.stderr.decode()}")
    return done


def cases(lab: Lab) -> Iterator[Case]:
    for words in (["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"], ["--tlsv1.2"], ["--http1.0"]):
        yield " ".join(words), lambda words=words: expect(
            b"The page is here." in curl(lab, "sites", "/", *words), "another page")
    for name in ("p384.test", "rsa.test", "ed25519.test"):
        yield name, lambda name=name: expect(
            b"The page is here." in curl(lab, "sites", "/", name=name), "another page")
    yield "--tls-max 1.1 is refused", lambda: expect(
        run(lab, "sites", "/", "--tls-max", "1.1").returncode == 35, "it is served")
    yield "a name that the certificate has not is curl's to refuse", lambda: expect(
        run(lab, "sites", "/", name="unknown.test").returncode == 60, "it is served")
    for words in (["--tlsv1.3"], ["--tls-max", "1.2"]):
        told = " ".join(words)
        yield f"1 MB down, {told}", lambda words=words: expect(
            curl(lab, "sites", "/1m.bin", *words) == MEGABYTE, "other bytes")
        yield f"1 MB up, {told}", lambda words=words: up(lab, words)
        yield f"{REQUESTS} requests on one connection, {told}", lambda words=words: many(lab, words)
    yield "a range of 1 MB", lambda: expect(
        curl(lab, "sites", "/1m.bin", "--range", "1000-1000999") == MEGABYTE[1000:1001000],
        "other bytes")
    for client, status in (("good", 0), ("revoked", 56), ("", 56)):
        yield f"a client's certificate is required: {client or 'none'}", lambda client=client, \
            status=status: presents(lab, client, status)
    yield "HSTS only where it is asked for", lambda: hsts(lab)
    yield "a request for a site whose wish the connection has not met: 421", lambda: expect(
        b"421" in curl(lab, "sites", "/", "-H", "Host: required.test", "-o", "/dev/null",
                       "-w", "%{http_code}"), "another status")
    yield "plain HTTP on the port of TLS: 400", lambda: plain(lab)


def up(lab: Lab, words: list[str]) -> None:
    # By HTTP/2, curl 7.88 fails if the response is complete before the request is.
    body = ["--http1.1", "--data-binary", f"@{lab.file('www/1m.bin')}", "-H", "Expect:"]
    expect(curl(lab, "sites", "/taken", *words, *body) == b"taken\n", "another response")


def many(lab: Lab, words: list[str]) -> None:
    server = lab.server("sites")
    before = server.counters()
    words = [*words, "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\\n"]
    told = curl(lab, "sites", f"/index.html?[1-{REQUESTS}]", *words).decode().split("\n")
    expect(told[0] == "200 1" and told[1:-1] == ["200 0"] * (REQUESTS - 1), f"{told[:5]}")
    server.moved(before, "requests", REQUESTS)
    made = server.counters()["handshakes"] - before["handshakes"]
    expect(made == 1, f"{made} handshakes")


def presents(lab: Lab, client: str, status: int) -> None:
    words = ["--cert", lab.file(f"{client}.both.pem")] if client else []
    done = run(lab, "sites", "/", *words, name="required.test")
    # (35 where the alert comes before curl takes the handshake for done.)
    expect(done.returncode in (status, 35 if status else 0), f"{done.returncode} {done.stderr}")
    expect((b"The page is here." in done.stdout) == (status == 0), "another response")


def hsts(lab: Lab) -> None:
    field = b"strict-transport-security: max-age=31536000"
    expect(field in curl(lab, "only13", "/", "--include").lower(), "none where it is asked for")
    expect(b"strict-transport" not in curl(lab, "sites", "/", "--include").lower(), "unasked")


def plain(lab: Lab) -> None:
    server = lab.server("sites")
    before = server.counters()
    command = ["curl", "--silent", "--max-time", "10", "--include", f"http://{HOST}:{server.port}/"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    expect(text.startswith("HTTP/1.1 400 ") and "Connection: close" in text, text[:300])
    server.moved(before, "handshakes_plain", 1)
