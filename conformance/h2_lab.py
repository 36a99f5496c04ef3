"""What the cases of HTTP/2 share: servers, each by TLS and in clear, and where programs are."""

import contextlib
import re
import shutil
import signal
import subprocess
from pathlib import Path

import page
from outcomes import Skipped, expect
from served import HOST, KINDS, MEGABYTE, PAGE, WISH, Server

TOOLS = page.ROOT / "target" / "conformance" / "bin"
CLEAR_HOST = "127.0.0.2"
WAYS = ("TLS", "in clear")
SITE = """
tls-cert = "p256.chain.pem"
tls-key = "p256.key"
root = "www"
h2c = true
listen = ["https://127.0.0.1:0", "http://127.0.0.2:0"]
{more}
[[route]]
path = "/taken"
answer = "taken\\n"
methods = ["GET", "POST"]
"""
# Three hosts of one certificate; one of them asks for a certificate of the client.
COALESCED = SITE + """
[[site]]
hosts = ["open.test", "also-open.test"]
root = "www"
[site.tls]
cert = "shared.chain.pem"
key = "shared.key"
[[site]]
hosts = ["asking.test"]
root = "www"
[site.tls]
cert = "shared.chain.pem"
key = "shared.key"
""" + WISH.format(name="optional")
KINDS["http2"] = (SITE.format(more=""), [])
# Connections that end after so many requests.
KINDS["short"] = (SITE.format(more=""), ["--max-requests-per-connection", "50"])


class Program:
    """The server with handlers, a gRPC service and axum's examples: `program`."""

    def __init__(self, path: Path, files: Path):
        self.process = subprocess.Popen([str(path), "serve", str(files)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        urls = [self.process.stdout.readline() for _ in WAYS]
        expect(all(urls), "it does not start")
        self.ports = {way: int(re.search(r":(\d+)/?$", url.strip())[1])
                      for way, url in zip(WAYS, urls)}

    def end(self) -> None:
        """Expects an orderly end."""
        expect(self.process.poll() is None, f"it has ended by {self.process.returncode}")
        try:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(15)
        finally:
            self.kill()
        expect(status == 0, f"it ends with {status}")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


class Lab:
    """Files, and servers that are started at their first use."""

    def __init__(self, server: Path, files: Path):
        self.path, self.files = server, files
        self.servers: dict[str, Server | Program] = {}
        log = ["--access-log", self.file("sites.access"),
               "--access-log-format", "%({host}i)s %(U)s %(s)s"]
        KINDS["sites"] = (COALESCED.format(more=""), log)
        www = files / "www"
        www.mkdir(exist_ok=True)
        (www / "index.html").write_text(PAGE)
        (www / "1m.bin").write_bytes(MEGABYTE)

    def server(self, kind: str = "http2") -> Server:
        """One of the command's; each serves both ways."""
        if kind not in self.servers:
            started = Server(self.path, self.files, kind, "own")
            found = re.search(r"http://127\.0\.0\.2:(\d+)/", started.log())
            started.ports = dict(zip(WAYS, (started.port, int(found[1]) if found else 0)))
            self.servers[kind] = started
        return self.servers[kind]

    def program(self) -> Program:
        if not tool("gustnado-conformance"):
            raise Skipped("it needs the program of `program`, which make conformance-http2 builds")
        if "program" not in self.servers:
            self.servers["program"] = Program(Path(tool("gustnado-conformance")), self.files)
        return self.servers["program"]

    def port(self, way: str, kind: str = "http2") -> int:
        server = self.program() if kind == "program" else self.server(kind)
        return server.ports[way]

    def origin(self, way: str, kind: str = "http2") -> str:
        place = "https://localhost" if way == "TLS" else f"http://{CLEAR_HOST}"
        return f"{place}:{self.port(way, kind)}"

    def file(self, name: str) -> str:
        return str(self.files / name)

    def ended(self, kind: str) -> None:
        """Expects that a server ends as it should; the next use starts another one."""
        self.servers.pop(kind).end()

    def ends(self) -> list:
        """One case for each server: that it ends as it should."""
        return [(f"the server `{kind}` ends in order and without a panic", server.end)
                for kind, server in self.servers.items()]

    def kill(self) -> None:
        for server in self.servers.values():
            server.kill()


def host(way: str) -> str:
    return HOST if way == "TLS" else CLEAR_HOST


def tool(name: str) -> str:
    """Where a program is; nothing if it is not installed."""
    built = TOOLS / name
    return str(built) if built.exists() else shutil.which(name) or ""


def run(command: list[str], seconds: int = 120) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL)


def succeeds(command: list[str], seconds: int = 60) -> str:
    """Expects the status 0, and returns what was printed."""
    done = run(command, seconds)
    expect(done.returncode == 0, done.stderr.strip() or f"status {done.returncode}")
    return done.stdout
