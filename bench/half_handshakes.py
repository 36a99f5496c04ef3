#!/usr/bin/env python3
"""Whether clients of HTTPS feel that others begin handshakes and do not end them.

    bench/half_handshakes.py --program target/release/gustnado --rate 10000

The server has one CPU; the clients and the attacker share the other. Established connections and
new ones ask at a fixed rate, without an attack and under it. Ends with 1 where the 99th percentile
under attack is above 50 ms for established connections, or above 500 ms for new ones.

Loopback only; it ends what it has started, by its process id, and nothing else.
"""

import argparse
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path

import machine

GOALS_MS = {"established": 50.0, "new": 500.0}
LOADS = {
    "established": ["-c", "64", "-q", "400"],
    "new": ["--churn", "-c", "32", "-q", "150", "--no-resumption"],
}


def hello() -> bytes:
    """A ClientHello as Python's OpenSSL sends it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def certificate(folder: Path) -> list[str]:
    cert, key = folder / "half-cert.pem", folder / "half-key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost", "-days", "2"],
        check=True, capture_output=True)
    return ["--tls-cert", str(cert), "--tls-key", str(key)]


def load(program: str, url: str, words: list[str], seconds: int) -> subprocess.Popen[str]:
    command = [*machine.pinned(machine.LOAD_CPU), program, "bench", url, "--insecure", "--json",
               "--quiet", "-d", str(seconds), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def percentile(found: dict) -> float:
    """The 99th percentile of latency, in milliseconds."""
    return float(found["latency_us"]["percentiles"]["99"]) / 1_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(machine.TARGET / "release/gustnado"))
    parser.add_argument("--rate", type=int, default=10_000, help="half handshakes each second")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--port", type=int, default=18_443)
    given = parser.parse_args()
    machine.raise_descriptor_limit()
    machine.BUILD.mkdir(parents=True, exist_ok=True)
    attacker = machine.BUILD / "half_handshakes"
    subprocess.run(["gcc", "-O2", "-o", str(attacker), str(machine.HERE / "half_handshakes.c")],
                   check=True)
    (machine.BUILD / "hello").write_bytes(hello())
    url = f"https://127.0.0.1:{given.port}/"
    server = subprocess.Popen(
        [*machine.pinned(machine.SERVER_CPU), given.program, "serve", "--host", "127.0.0.1",
         "--port", str(given.port), "--workers", "1", "--quiet", *certificate(machine.BUILD)])
    missed = False
    try:
        time.sleep(1)
        for is_attacked in (False, True):
            clients = {name: load(given.program, url, words, given.seconds)
                       for name, words in LOADS.items()}
            if is_attacked:
                attack = subprocess.run(
                    [*machine.pinned(machine.LOAD_CPU), str(attacker), str(given.port),
                     str(machine.BUILD / "hello"), str(given.rate), str(given.seconds)],
                    check=True, capture_output=True, text=True)
                begun, answered = map(int, attack.stdout.split())
                print(f"{begun / given.seconds:,.0f} half handshakes/s, "
                      f"{answered / given.seconds:,.0f} answered")
            for name, client in clients.items():
                found = json.loads(client.communicate(timeout=60)[0])
                p99 = percentile(found)
                is_missed = is_attacked and p99 > GOALS_MS[name]
                missed = missed or is_missed
                print(f"{'attacked' if is_attacked else 'quiet':9} {name:12} p99 {p99:8.2f} ms"
                      + (f"  NOT REACHED: {GOALS_MS[name]} ms" if is_missed else ""))
    finally:
        server.terminate()
        server.wait(30)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
