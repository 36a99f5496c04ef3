"""The servers that are compared: how each is started, found ready, watched and ended."""

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import machine
import tomllib
from machine import BUILD, FILES, SITE, BenchError

HOST = "127.0.0.1"
READY_SECONDS_MAX = 20
STOP_SECONDS_MAX = 12
FIRST_PORT = 21_000  # below the ephemeral ports, so that no client sits on it


@dataclass(frozen=True)
class Work:
    """What is asked of every contender alike."""

    body_bytes: int
    close: bool = False  # one request per connection
    workers: int = 1

    @property
    def path(self) -> str:
        return "/" + FILES[self.body_bytes]


@dataclass(frozen=True)
class Contender:
    """One server in one setting. `limit` is the null server it is held against."""

    name: str
    kind: str  # gustnado, null or nginx
    io: str = "epoll"
    scheduler: str = "pool"
    profile: str = "release"
    extra: tuple[str, ...] = field(default=())

    @property
    def null(self) -> str:
        """The null server of the same backend."""
        return "null-" + self.io

    def command(self, port: int, work: Work) -> list[str]:
        """The command line that serves `work` on `port`."""
        if self.kind == "null":
            close = ["close"] if work.close else []
            return [str(BUILD / self.name), str(port), str(work.body_bytes), *close]
        if self.kind == "nginx":
            folder = nginx_folder(port, single="single" in self.extra)
            conf = str(folder / "nginx.conf")
            return ["nginx", "-p", str(folder), "-c", conf, "-e", str(folder / "error.log")]
        words = [machine.gustnado(self.profile), "serve", str(SITE), "--port", str(port)]
        words += ["--workers", str(work.workers), "--io", self.io]
        words += ["--scheduler", self.scheduler, "--quiet"]
        return words + list(self.extra)


GUSTNADO_URING = Contender("gustnado-uring", "gustnado", io="uring")
GUSTNADO_EPOLL = Contender("gustnado-epoll", "gustnado")
NULL_EPOLL = Contender("null-epoll", "null")
NULL_URING = Contender("null-uring", "null", io="uring")
NGINX = Contender("nginx", "nginx")
FIVE = [GUSTNADO_EPOLL, GUSTNADO_URING, NULL_EPOLL, NULL_URING, NGINX]


def scheduled(io: str, scheduler: str) -> Contender:
    """Gustnado on one backend with one scheduler."""
    return Contender(f"gustnado-{io} {scheduler}", "gustnado", io=io, scheduler=scheduler)


# The only tuned nginx there is: the one of the contests.
NGINX_PRESET = machine.ROOT / "crates/lab/presets/nginx-tuned.toml"
NGINX_DESCRIPTORS = 20_000


def nginx_folder(port: int, single: bool) -> Path:
    """Writes the settings of one nginx; `single` keeps it in one process, for callgrind."""
    folder = nginx_path(port)
    folder.mkdir(parents=True, exist_ok=True)
    words = {
        "user": "root" if os.geteuid() == 0 else "nobody",
        "cpus": 1,
        "descriptors": NGINX_DESCRIPTORS,
        "work": folder,
        "port": port,
        "root": SITE,
    }
    text = tomllib.loads(NGINX_PRESET.read_text())["files"]["nginx.conf"]
    for word, meaning in words.items():
        text = text.replace("{" + word + "}", str(meaning))
    first = "daemon off;\n" + ("master_process off;\n" if single else "")
    (folder / "nginx.conf").write_text(first + text)
    return folder


def nginx_path(port: int) -> Path:
    return BUILD / f"nginx-{port}"


def free_port() -> int:
    """A port that nobody listens on, different at every call."""
    global FIRST_PORT
    for _ in range(2000):
        FIRST_PORT += 1
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, FIRST_PORT))
            except OSError:
                continue
            return FIRST_PORT
    raise BenchError("no free port below 24,000")


class Server:
    """A running contender. Use it as a context: it is ended at the end, come what may."""

    def __init__(self, contender: Contender, work: Work, cpu: str | None = machine.SERVER_CPU,
                 before: tuple[str, ...] = ()):
        self.contender = contender
        self.work = work
        self.port = free_port()
        pin = machine.pinned(cpu) if cpu is not None else []
        self.command = [*pin, *before, *contender.command(self.port, work)]
        self.log = open(BUILD / f"{contender.name.replace(' ', '-')}.log", "w+b")
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=plain_environment(),
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def await_ready(self, seconds: float = READY_SECONDS_MAX) -> None:
        """Waits for the first answer and holds its status and body against what was asked."""
        deadline = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise BenchError(f"{self.contender.name} ended at start: {self.last_words()}")
            try:
                link = socket.create_connection((HOST, self.port), timeout=seconds)
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise BenchError(f"{self.contender.name} does not listen") from None
                time.sleep(0.0005)
        with link:
            check_answer(self.contender.name, link, self.work)

    def last_words(self) -> str:
        self.log.flush()
        text = Path(self.log.name).read_text(errors="replace").strip()
        return text.split("\n")[-1] if text else f"status {self.process.poll()}, nothing said"

    def pids(self) -> list[int]:
        """The process and its children, theirs too."""
        return tree(self.process.pid)

    def cpu_seconds(self) -> float:
        """CPU time so far of every thread of every process, in nanosecond resolution."""
        return cpu_seconds(self.pids())

    def rss_bytes(self) -> int:
        """Resident memory, exact (from the page tables), over all its processes."""
        return rss_bytes(self.pids())

    def threads(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in self.pids())

    def uses_uring(self) -> bool:
        """Whether it holds a ring, so that a silent fallback cannot pass for one."""
        for pid in self.pids():
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                try:
                    if "io_uring" in os.readlink(fd):
                        return True
                except OSError:
                    continue
        return False

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> int | None:
        """TERM, then KILL, each to the processes of this server alone."""
        pids = self.pids() if self.process.poll() is None else []
        if pids:
            send_signal(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            for pid in pids:
                send_signal(pid, signal.SIGKILL)
            self.process.wait(5)
        self.log.close()
        if self.contender.kind == "nginx":
            shutil.rmtree(nginx_path(self.port), ignore_errors=True)
        return self.process.returncode


def plain_environment() -> dict[str, str]:
    """Ours without the settings of a server that somebody may have left in it."""
    kept = os.environ.items()
    return {name: value for name, value in kept
            if name != "PORT" and not name.startswith("GUSTNADO_")}


def cpu_seconds(pids: list[int]) -> float:
    """CPU time so far of every thread of some processes, in nanosecond resolution."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def rss_bytes(pids: list[int]) -> int:
    """Resident memory of some processes, exact (from the page tables)."""
    total = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(text.split("\nRss:")[1].split()[0]) * 1024
    return total


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        parent = int(stat.rsplit(")", 1)[1].split()[1])
        parents.setdefault(parent, []).append(int(entry))
    found, at = [root], 0
    while at < len(found):
        found += parents.get(found[at], [])
        at += 1
    return found


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def check_answer(name: str, link: socket.socket, work: Work) -> None:
    """One request; the answer must be a 200 with exactly the body that everybody answers with."""
    link.sendall(f"GET {work.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    status, body = read_answer(link)
    if status != 200 or body != b"x" * work.body_bytes:
        raise BenchError(f"{name} answers {work.path} with {status} and {len(body)} bytes")


def read_answer(link: socket.socket) -> tuple[int, bytes]:
    """Reads one answer that has a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = link.recv(65536)
        if not piece:
            raise BenchError(f"connection ended after {data!r}")
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    pieces, have = [body], len(body)
    while have < length:
        piece = link.recv(1 << 20)
        if not piece:
            raise BenchError(f"connection ended after {have} of {length} body bytes")
        pieces.append(piece)
        have += len(piece)
    return int(head.split()[1]), b"".join(pieces)
