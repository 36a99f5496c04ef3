#!/usr/bin/env python3
"""What HTTPS costs a server, next to others: CPU for each request, for each handshake, and memory
for each idle connection. The server has one CPU, the load the other; rounds are interleaved.

  bench/tls.py                     everything, some ten minutes; prints the page
  bench/tls.py --report            writes docs/results/tls.md
  bench/tls.py --only own,rustls   these contenders only

Drives wrk for bodies, and crates/server/examples/tls_clients.rs for handshakes and idle
connections. Needs Python's standard library, wrk, openssl, and the servers that are compared:
contests/peers.sh has newer ones.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import machine
import tomllib
from contenders import HOST, cpu_seconds, free_port, rss_bytes, tree
from machine import BUILD, ROOT, SITE, BenchError, say

CLIENTS = machine.TARGET / "release" / "examples" / "tls_clients"
PAIR = (BUILD / "tls-cert.pem", BUILD / "tls-key.pem")
ROUNDS = 5
HANDSHAKES = 2_000
HELD = 5_000
SECONDS = 2
PRESETS = ROOT / "crates/lab/presets"
PEERS = machine.TARGET / "peers" / "bin"

# name -> the arguments of wrk; the unit is a request.
BODIES = {
    "4 KB, 64 connections": ["-t1", "-c64", "/4k.txt"],
    "1 MB, 16 connections": ["-t1", "-c16", "/1m.txt"],
}
# name -> the words of tls_clients; the unit is a connection with one request of 4 KB.
CONNECTIONS = {
    "new connection, full handshake": ["full", "x25519"],
    "new connection, X25519MLKEM768": ["full", "x25519mlkem768"],
    "new connection, resumed": ["resumed", "x25519"],
}
IDLE = "bytes per idle connection"


class Peer:
    """A server that speaks TLS on a port."""

    def __init__(self, name: str, command: list[str], files: dict[str, str], library: str):
        self.name, self.library, self.port = name, library, free_port()
        self.folder = BUILD / f"tls-{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        words = {
            "user": "root" if os.geteuid() == 0 else "nobody", "cpus": "1",
            "descriptors": "20000", "work": str(self.folder), "port": str(self.port),
            "root": str(SITE), "cert": str(PAIR[0]), "key": str(PAIR[1]),
        }

        def filled(text: str) -> str:
            for word, meaning in words.items():
                text = text.replace("{" + word + "}", meaning)
            return text

        for file, text in files.items():
            (self.folder / file).write_text(filled(text))
        self.command = [*machine.pinned(machine.SERVER_CPU), *map(filled, command)]

    def __enter__(self) -> "Peer":
        log = open(self.folder / "log", "w+b")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while run_clients(self, "full", 1, "x25519", check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = (self.folder / "log").read_text(errors="replace")[-300:]
                raise BenchError(f"{self.name} does not serve by TLS: {text}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(12)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_seconds(self) -> float:
        return cpu_seconds(tree(self.process.pid))

    def rss_bytes(self) -> int:
        return rss_bytes(tree(self.process.pid))


def peers(only: list[str]) -> list[Peer]:
    """Every server that is installed, in the settings of the contests."""
    pair = ["--tls-cert", "{cert}", "--tls-key", "{key}"]
    ours = [machine.gustnado(), "serve", str(SITE), "--port", "{port}", "--workers", "1", "--quiet"]
    found = []
    for name in ("own", "rustls"):
        words = [*ours, *pair, "--tls-records", name]
        if not only or name in only:
            found.append(Peer(name, words, {}, "rustls, AWS-LC"))
    nginx = tomllib.loads((PRESETS / "nginx-tuned.toml").read_text())["files"]["nginx.conf"]
    nginx = nginx.replace(" deferred backlog=65535;", """ ssl deferred backlog=65535;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:tls:10m;
        ssl_session_tickets on;""")
    for name, program in (("nginx", "/usr/sbin/nginx"), ("nginx-new", str(PEERS / "nginx"))):
        if Path(program).exists() and (not only or name in only):
            text = subprocess.run([program, "-V"], capture_output=True, text=True).stderr
            version = re.search(r"nginx/\S+", text)
            library = re.search(r"(?:built|running) with (OpenSSL \S+)", text)
            told = f"{version and version[0]}, {library and library[1]}"
            words = [program, "-e", "{work}/error.log", "-c", "{work}/nginx.conf",
                     "-g", "daemon off;"]
            found.append(Peer(name, words, {"nginx.conf": nginx}, told))
    if shutil.which("h2o") and (not only or "h2o" in only):
        conf = tomllib.loads((PRESETS / "h2o-tuned.toml").read_text())["files"]["h2o.conf"]
        conf = conf.replace("  port: {port}\n", "  port: {port}\n  ssl:\n"
                            "    certificate-file: {cert}\n    key-file: {key}\n")
        words = ["h2o", "-m", "worker", "-c", "{work}/h2o.conf"]
        found.append(Peer("h2o", words, {"h2o.conf": conf}, machine.first_line(["h2o", "-v"])))
    caddy = shutil.which("caddy") or ((PEERS / "caddy").exists() and str(PEERS / "caddy"))
    if caddy and (not only or "caddy" in only):
        conf = ("{\n  admin off\n  auto_https off\n}\nhttps://localhost:{port} {\n"
                "  bind 127.0.0.1\n  tls {cert} {key}\n  root * {root}\n  file_server\n}\n")
        words = ["env", "GOMAXPROCS=1", str(caddy), "run", "--config", "{work}/Caddyfile",
                 "--adapter", "caddyfile"]
        found.append(Peer("caddy", words, {"Caddyfile": conf},
                          "Go, caddy " + machine.first_line([str(caddy), "version"]).split()[0]))
    return found


def run_clients(peer: Peer, mode: str, count: int, group: str,
                check: bool = True) -> subprocess.CompletedProcess:
    words = [str(CLIENTS), f"{HOST}:{peer.port}", str(PAIR[0]), mode, str(count), group]
    done = subprocess.run([*machine.pinned(machine.LOAD_CPU), *words], capture_output=True,
                          text=True, timeout=120)
    if check and done.returncode:
        raise BenchError(done.stderr.strip()[-300:])
    return done


def body_cost(peer: Peer, words: list[str]) -> float:
    """CPU in microseconds for each request."""
    url = f"https://localhost:{peer.port}{words[-1]}"
    command = [*machine.pinned(machine.LOAD_CPU), "wrk", *words[:-1], f"-d{SECONDS}s", url]
    before = peer.cpu_seconds()
    text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    used = peer.cpu_seconds() - before
    found = re.search(r"(\d+) requests in", text)
    if not found or "Socket errors" in text or "Non-2xx" in text:
        raise BenchError("wrk: " + " ".join(text.split())[-200:])
    return used / int(found[1]) * 1e6


def connection_cost(peer: Peer, mode: str, group: str) -> float:
    before = peer.cpu_seconds()
    run_clients(peer, mode, HANDSHAKES, group)
    return (peer.cpu_seconds() - before) / HANDSHAKES * 1e6


def idle_bytes(peer: Peer) -> float:
    run_clients(peer, "full", 200, "x25519")
    before = peer.rss_bytes()
    words = [str(CLIENTS), f"{HOST}:{peer.port}", str(PAIR[0]), "held", str(HELD), "x25519"]
    held = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if held.stdout.readline().strip() != str(HELD):
            raise BenchError(f"{peer.name} did not hold {HELD} connections")
        time.sleep(2)
        return (peer.rss_bytes() - before) / HELD
    finally:
        held.stdin.close()
        held.wait(30)


def measure(all_peers: list[Peer], rounds: int) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for peer in all_peers:
            with peer:
                for name, words in BODIES.items():
                    note(found, name, peer, body_cost, words)
                for name, (mode, group) in CONNECTIONS.items():
                    note(found, name, peer, connection_cost, mode, group)
                if number == 0:
                    note(found, IDLE, peer, idle_bytes)
    return found


def note(found: dict, name: str, peer: Peer, take: Callable[..., float], *words: object) -> None:
    try:
        value = take(peer, *words)
    except (BenchError, subprocess.TimeoutExpired) as error:
        say(f"  {peer.name}: {name}: {error}")
        return
    found.setdefault(name, {}).setdefault(peer.name, []).append(value)
    say(f"  {peer.name}: {name}: {value:,.1f}")


def page(found: dict, all_peers: list[Peer]) -> str:
    about = machine.describe()
    lines = [
        "# HTTPS, measured", "",
        "Made by `bench/tls.py --report`: server CPU in microseconds for each request or "
        f"connection, the median of {ROUNDS}",
        "rounds in turn, and its least and most. The server has one CPU, wrk or a client of "
        "rustls the other. The certificate",
        f"is of P-256. A new connection asks for 4 KB once. Idle ones are {HELD:,} that have asked "
        "once.", "",
        f"{about['date']}, commit {about['commit']}, {about['cpus']}, Linux {about['kernel']}.", "",
        "| contender | TLS | " + " | ".join([*BODIES, *CONNECTIONS, IDLE]) + " |",
        "| --- | --- |" + " ---: |" * (len(BODIES) + len(CONNECTIONS) + 1),
    ]
    for peer in all_peers:
        cells = []
        for name in [*BODIES, *CONNECTIONS, IDLE]:
            values = found.get(name, {}).get(peer.name, [])
            if not values:
                cells.append("none")
                continue
            middle = statistics.median(values)
            shown = f"{middle:,.0f}" if middle >= 100 else f"{middle:.1f}"
            spread = f" ({min(values):,.1f} to {max(values):,.1f})" if len(values) > 1 else ""
            cells.append(shown + spread)
        name = {"own": "gustnado, own records", "rustls": "gustnado, rustls's records"}
        lines.append(f"| {name.get(peer.name, peer.name)} | {peer.library} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def make_pair() -> None:
    openssl = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"]
    subprocess.run([*openssl, "-out", str(PAIR[1])], check=True)
    subprocess.run(["openssl", "req", "-x509", "-key", str(PAIR[1]), "-out", str(PAIR[0]),
                    "-subj", "/CN=localhost", "-days", "365",
                    "-addext", "subjectAltName=DNS:localhost",
                    "-addext", "basicConstraints=critical,CA:FALSE"], check=True)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--report", action="store_true", help="write docs/results/tls.md")
    words.add_argument("--publish", action="store_true", help="also over another machine's page")
    words.add_argument("--only", default="", metavar="NAMES", help="own,rustls,nginx,h2o,caddy")
    words.add_argument("--rounds", type=int, default=ROUNDS)
    asked = words.parse_args()
    machine.install_missing(["wrk", "taskset"])
    machine.run_build(["cargo", "build", "--quiet", "--release", "-p", "gustnado-cli"])
    example = ["-p", "gustnado", "--features", "tls", "--example", "tls_clients"]
    machine.run_build(["cargo", "build", "--quiet", "--release", *example])
    machine.raise_descriptor_limit()
    BUILD.mkdir(parents=True, exist_ok=True)
    machine.make_site()
    make_pair()
    all_peers = peers([name for name in asked.only.split(",") if name])
    text = page(measure(all_peers, asked.rounds), all_peers)
    print(text)
    if asked.report:
        machine.page("tls.md", machine.describe(), asked.publish).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
