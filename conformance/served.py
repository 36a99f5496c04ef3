"""The servers that clients are run against, their settings and their counters."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from outcomes import Unmet, expect

HOST = "127.0.0.1"
MEGABYTE = bytes(range(256)) * 4096
PAGE = "<!doctype html><title>page</title><p id=told>The page is here.</p>\n"
# Files of the sites server: one certificate by default, others by the name that is asked for.
SITES = """
tls-cert = "p256.chain.pem"
tls-key = "p256.key"
root = "www"
[[route]]
path = "/taken"
answer = "taken\\n"
methods = ["GET", "POST"]
"""
SITE = """
[[site]]
hosts = ["{name}.test"]
root = "www"
[site.tls]
cert = "{pair}.chain.pem"
key = "{pair}.key"
"""
WISH = """client-auth = "{name}"
client-ca = "clients.pem"
client-crl = "clients.crl.pem"
"""


def of_sites() -> str:
    own = "".join(SITE.format(name=name, pair=name) for name in ("p384", "rsa", "ed25519"))
    wish = "".join(SITE.format(name=name, pair="wanting") + WISH.format(name=name)
                   for name in ("required", "optional"))
    return SITES + own + wish


def of_rsa(more: str = "") -> str:
    """One certificate of RSA, which the oldest clients can verify, for any name."""
    return SITES.replace("p256", "rsa").replace("[[route]]", f"{more}\n[[route]]", 1)


# name -> the configuration file, and words behind it
KINDS = {
    "sites": (of_sites(), []),
    "strict": (of_sites(), ["--tls-strict-names=true"]),
    "rsa": (of_rsa(), []),
    "only13": (of_sites(), ["--tls-version-min", "1.3", "--hsts", "365d"]),
    "small": (of_sites(), ["--tls-handshake-timeout", "1s", "--tls-handshakes", "64"]),
}


class Server:
    """A started server; it ends with the suite."""

    def __init__(self, program: Path, files: Path, kind: str, records: str):
        text, words = KINDS[kind]
        self.name, self.log_path = f"{kind}, {records}", files / f"{kind}-{records}.log"
        (files / f"{kind}.toml").write_text(text)
        command = [str(program), "serve", "--config", str(files / f"{kind}.toml"),
                   *([] if "listen =" in text else ["--port", "0"]), "--workers", "1",
                   "--stats-interval", "100ms", "--tls-records", records, *words]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GUSTNADO_")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=clean)
        self.port = self._port()

    def _port(self) -> int:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"https://127\.0\.0\.1:(\d+)/[^\n]*\n", self.log())
            if found:
                return int(found[1])
            time.sleep(0.01)
        self.kill()
        raise Unmet(f"the server ({self.name}) does not start: {self.log()[-300:]}")

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def counters(self) -> dict[str, int]:
        """The counters by the next line of `--stats-interval`."""
        begin, deadline = self.log_path.stat().st_size, time.monotonic() + 5
        while time.monotonic() < deadline:
            with open(self.log_path, "rb") as log:
                log.seek(begin)
                text = log.read().decode(errors="replace")
            for line in text.splitlines(keepends=True):
                if line.startswith("event=stats") and line.endswith("\n"):
                    pairs = (word.split("=") for word in line.split()[1:])
                    return {name: int(value) for name, value in pairs}
            time.sleep(0.02)
        raise Unmet(f"the server ({self.name}) writes no statistics")

    def moved(self, before: dict[str, int], name: str, by: int, seconds: float = 3) -> None:
        """Expects that a counter has grown by as much, now or soon."""
        deadline = time.monotonic() + seconds
        while True:
            grown = self.counters()[name] - before[name]
            if grown >= by:
                return
            expect(time.monotonic() < deadline, f"{name} has grown by {grown}, not by {by}")

    def rests(self, name: str, seconds: float = 10) -> None:
        """Waits until a counter no longer grows."""
        deadline, last = time.monotonic() + seconds, -1
        while (now := self.counters()[name]) != last:
            expect(time.monotonic() < deadline, f"{name} goes on growing: {now}")
            last = now
            time.sleep(0.2)

    def end(self) -> None:
        """Expects an orderly end of a server that has not panicked."""
        expect(self.process.poll() is None, f"it has ended by {self.process.returncode}")
        panics = self.counters()["panics"]
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(15)
        finally:
            self.kill()
        expect(status == 0, f"it ends with {status}: {self.log()[-300:]}")
        expect(panics == 0 and "panicked" not in self.log(), f"{panics} panics")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


class Lab:
    """What cases share: files, and servers that are started at their first use."""

    def __init__(self, program: Path, files: Path, records: str, quick: bool):
        self.program, self.files, self.records, self.quick = program, files, records, quick
        self.servers: dict[str, Server] = {}
        www = files / "www"
        www.mkdir(exist_ok=True)
        (www / "index.html").write_text(PAGE)
        (www / "1m.bin").write_bytes(MEGABYTE)

    def server(self, kind: str) -> Server:
        if kind not in self.servers:
            self.servers[kind] = Server(self.program, self.files, kind, self.records)
        return self.servers[kind]

    def file(self, name: str) -> str:
        return str(self.files / name)

    def ends(self) -> list:
        """One case for each server: that it ends as it should."""
        return [(f"the server `{kind}` ends in order and without a panic", server.end)
                for kind, server in self.servers.items()]

    def kill(self) -> None:
        for server in self.servers.values():
            server.kill()
