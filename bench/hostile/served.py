"""The server under attack: its folder, its configuration file, its process, and what that uses."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

SMALL = b"A small page.\n" * 40
MIDDLE = b"0123456789abcdef" * 6_000  # 96,000 bytes: a file that is sent, not copied
LARGE_BYTES = 64 << 20
TAKEN = b"taken\n"

CONFIGURATION = """\
root = "./public"

[[route]]
path = "/form"
answer = "taken\\n"
methods = ["GET", "POST"]

[[route]]
path = "/old/{*rest}"
redirect = "/{rest}"

[[route]]
path = "/private/{*rest}"
answer = "This is private."
status = 403

[[route]]
path = "/more"
folder = "./more"

[[error-page]]
status = 404
file = "404.html"
"""


class Site:
    """A temporary folder with the files and the configuration file of the server."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gustnado-hostile-"))
        public, more = self.folder / "public", self.folder / "more"
        for folder in (public, public / "private", more):
            folder.mkdir()
        (public / "index.html").write_bytes(SMALL)
        (public / "small.txt").write_bytes(SMALL)
        (public / "middle.bin").write_bytes(MIDDLE)
        (public / "private" / "secret.txt").write_bytes(b"SECRET")
        (more / "page.html").write_bytes(SMALL)
        (self.folder / "404.html").write_bytes(b"There is no such page.\n")
        with open(public / "large.bin", "wb") as large:
            for _ in range(LARGE_BYTES >> 20):
                large.write(b"L" * (1 << 20))
        self.configuration = self.folder / "site.toml"
        self.configuration.write_text(CONFIGURATION)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Server:
    """The command, serving the site. What it prints is kept, and its counters are read from it."""

    def __init__(self, program, backend, site, cpus, more_flags=()):
        command = [program, "serve", "--config", str(site.configuration), "--port", "0",
                   "--io", backend, "--stats-interval", "250ms", *more_flags]
        if shutil.which("taskset"):
            command = ["taskset", "-c", ",".join(map(str, cpus)), *command]
        if shutil.which("setpriv"):
            # It ends with this program, however that ends. Both keep the process id.
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        self.said, self.counters, self.port, self.code = [], {}, None, None
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        until = time.monotonic() + 10
        while self.port is None:
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise SystemExit("the server does not start: " + " | ".join(self.said))
            time.sleep(0.01)

    def read(self):
        for line in self.process.stdout:
            if line.startswith("event=stats "):
                words = (word.split("=") for word in line.split()[1:])
                self.counters = {name: int(number) for name, number in words}
                continue
            self.said = [*self.said, line.strip()][-50:]
            found = re.search(r"listens on http://127\.0\.0\.1:(\d+)/", line)
            if found:
                self.port = int(found.group(1))

    def use(self):
        """What its process uses now, or nothing if it has ended."""
        home = f"/proc/{self.process.pid}"
        try:
            status = Path(home, "status").read_text()
            descriptors = len(os.listdir(f"{home}/fd"))
            cpu = Path(home, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        if resident is None:
            return None
        return {
            "memory_kb": int(resident.group(1)),
            "descriptors": descriptors,
            "connections": self.counters.get("connections_open", 0),
            "cpu_s": (int(cpu[11]) + int(cpu[12])) / os.sysconf("SC_CLK_TCK"),
        }

    def stop(self):
        """Ends it in order, and says with which exit code it ended."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.code = self.process.wait()
        self.reader.join(5)
        return self.code
