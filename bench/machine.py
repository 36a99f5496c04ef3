"""The machine: what is installed, what is built, where things lie, and what else was going on.

Uses nothing of this harness; everything else uses it.
"""

import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "bench"
NULL = ROOT / "crates/lab/presets/null.c"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute()
BUILD = TARGET / "bench"  # built programs, the served folder, raw outputs
SITE = BUILD / "site"
RESULTS = ROOT / "docs/results"  # the published pages
SERVER_CPU = "0"
LOAD_CPU = str(min(1, (os.cpu_count() or 1) - 1))
DESCRIPTORS_WANTED = 20_000
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# body bytes -> the file that holds them
FILES = {
    13: "13.txt",
    19: "19.txt",
    108: "108.txt",
    4096: "4k.txt",
    65536: "64k.txt",
    1 << 20: "1m.txt",
}

# program -> the Debian package that brings it
PACKAGES = {
    "wrk": "wrk",
    "ab": "apache2-utils",
    "nginx": "nginx-light",
    "strace": "strace",
    "valgrind": "valgrind",
    "gcc": "gcc",
    "taskset": "util-linux",
}
LIBURING = Path("/usr/include/liburing.h")


class BenchError(Exception):
    """Something that stops a measurement, said in one line with its remedy."""


def pinned(cpu: str) -> list[str]:
    """The words that start a program on one CPU."""
    return ["taskset", "-c", cpu]


def raise_descriptor_limit() -> int:
    """Raises our limit, which children inherit, as far as it goes; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < DESCRIPTORS_WANTED:
        say(f"note: `ulimit -Hn` is {hard}; scenarios with 10,000 connections want 20,000")
    return hard


def install_missing(programs: list[str]) -> None:
    """Installs from Debian what the chosen scenarios need and the machine lacks."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    os.environ["PATH"] = path
    packages = [PACKAGES[name] for name in programs if shutil.which(name) is None]
    if not LIBURING.exists():
        packages.append("liburing-dev")
        packages.append("libc6-dev")
    if not packages:
        return
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-qq"]
    say("installing " + " ".join(packages))
    try:
        subprocess.run([*apt, "update"], check=True, stdin=subprocess.DEVNULL)
        install = [*apt, "install", "--no-install-recommends", *packages]
        subprocess.run(install, check=True, stdin=subprocess.DEVNULL)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        names = " ".join(packages)
        raise BenchError(f"cannot install {names} ({error}); install them by hand") from error


def build(profiles: list[str]) -> None:
    """Builds gustnado in each Cargo profile, the null servers and the C clients, and the folder."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for profile in profiles:
        command = ["cargo", "build", "--quiet", "-p", "gustnado-cli", "--profile", profile]
        run_build(command)
    c = ["gcc", "-O2", "-o"]
    run_build([*c, str(BUILD / "null-epoll"), str(NULL)])
    run_build([*c, str(BUILD / "null-uring"), "-DURING", str(NULL), "-luring"])
    run_build([*c, str(BUILD / "idle"), str(HERE / "idle.c")])
    client = str(HERE / "c1m_client.c")
    run_build([*c, str(BUILD / "c1m_client"), client, "-luring", "-lpthread"])
    make_site()


def build_without_lab(profile: str) -> str:
    """Builds the command as a server alone, with HTTPS. Returns where it lies.

    Its name is that of the whole command, which is put back: cargo has it at hand.
    """
    command = ["cargo", "build", "--quiet", "-p", "gustnado-cli", "--profile", profile]
    run_build([*command, "--no-default-features", "--features", "tls"])
    kept = BUILD / "gustnado-without-lab"
    shutil.copy2(gustnado(profile), kept)
    run_build(command)
    return str(kept)


def run_build(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError("cannot build: " + " ".join(command))


def make_site() -> None:
    """The folder that is served: files of x, so that every contender can answer the same bytes."""
    SITE.mkdir(parents=True, exist_ok=True)
    for size, name in FILES.items():
        (SITE / name).write_bytes(b"x" * size)


def gustnado(profile: str = "release") -> str:
    """Where the built binary of a Cargo profile lies."""
    return str(TARGET / profile / "gustnado")


def first_line(command: list[str]) -> str:
    """The first line a program says about itself, or an empty text."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip() or done.stderr.strip()).split("\n")[0].strip()


def page(name: str, about: dict, publish: bool) -> Path:
    """Where a page goes: among the published ones, or among the raw outputs if it may not.

    Figures of changed sources are never published, and another machine's page is replaced only
    where `publish` says so. `about` is what `describe` says.
    """
    published = RESULTS / name
    if "local changes" in about["commit"]:
        reason = "there are local changes: commit them first"
    elif not publish and published.exists() and about["cpus"] not in published.read_text():
        reason = "docs/results has another machine's page: --publish replaces it"
    else:
        return published
    BUILD.mkdir(parents=True, exist_ok=True)
    say(f"not published: {reason}. Written to {BUILD / name}")
    return BUILD / name


def describe() -> dict:
    """Where and with what this was measured."""
    commit = first_line(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]) or "unknown"
    # (What a bench writes does not change what it measures.)
    changed = ["git", "-C", str(ROOT), "status", "--porcelain", "--", ".", ":!docs/results"]
    if first_line(changed):
        commit += " with local changes"
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory_kb = int(Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0])
    return {
        "commit": commit,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "kernel": platform.release(),
        "cpus": f"{os.cpu_count()} x {model}",
        "memory_mb": memory_kb // 1024,
        "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "versions": {
            "rustc": first_line(["rustc", "--version"]),
            "gcc": first_line(["gcc", "--version"]),
            "nginx": first_line(["nginx", "-v"]).removeprefix("nginx version: "),
            "wrk": first_line(["wrk", "-v"]).split(" Copyright")[0],
            "ab": first_line(["ab", "-V"]).removeprefix("This is "),
            "valgrind": first_line(["valgrind", "--version"]),
            "strace": first_line(["strace", "-V"]),
        },
    }


def stolen_and_busy() -> tuple[float, float]:
    """CPU seconds of the whole machine so far: stolen by the host, and busy with anything."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    busy = user + nice + system + irq + softirq
    return steal / TICKS_PER_SECOND, busy / TICKS_PER_SECOND


def children_seconds() -> float:
    """CPU seconds of the children that have ended (the load generators)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def say(text: str) -> None:
    """Progress, for the person who waits."""
    print(text, file=sys.stderr, flush=True)
