"""What the runs of Autobahn's two sides share: its cases, how it is started, and what it says."""

import json
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

AGENT = "gustnado"
SECTIONS = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*", "12.*", "13.*"]
# What is neither right nor wrong is informational; NON-STRICT is right, and later than it could be.
STATES = ("OK", "NON-STRICT", "INFORMATIONAL")
START_S = 30


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def await_port(process: subprocess.Popen, name: str, port: int) -> None:
    """Waits until a program that was started listens."""
    for _ in range(START_S * 10):
        if process.poll() is not None:
            raise SystemExit(f"{name} has ended by {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{name} does not listen")


def command(wstest: Path, mode: str, folder: Path, cases: list[str], more: dict) -> list[str]:
    """Writes what a run is to do into a folder, with `reports` in it. Returns what starts it."""
    spec = {"options": {"failByDrop": False}, "outdir": str(folder / "reports"), "cases": cases,
            "exclude-cases": [], "exclude-agent-cases": {}, **more}
    (folder / "spec.json").write_text(json.dumps(spec))
    # Its shebang may be longer than the kernel takes.
    return [str(wstest.parent / "python"), str(wstest), "-m", mode,
            "-s", str(folder / "spec.json")]


def version(wstest: Path, unknown: str) -> str:
    told = subprocess.run([str(wstest.parent / "pip"), "show", "autobahntestsuite"],
                          capture_output=True, text=True, check=False).stdout.splitlines()
    return next((line.split()[1] for line in told if line.startswith("Version:")), unknown)


def is_good(case: dict) -> bool:
    return {case["behavior"], case["behaviorClose"]} <= set(STATES)


def in_order(found: dict[str, dict]) -> list[tuple[str, dict]]:
    return sorted(found.items(), key=lambda one: [int(part) for part in one[0].split(".")])


def rows(found: dict[str, dict], before: str = "") -> str:
    """The rows of a table: for each section, how many cases are of each state, and failed.

    - before: the cells in front of those.
    """
    sections: dict[str, Counter] = {}
    for name, case in in_order(found):
        state = case["behavior"] if is_good(case) else "failed"
        sections.setdefault(name.split(".")[0], Counter())[state] += 1
    text = ""
    for section, counts in sections.items():
        cells = [counts[state] for state in (*STATES, "failed")]
        text += f"| {before}{section} | " + " | ".join(map(str, cells)) + " |\n"
    return text


def named(found: dict[str, dict], title: str, state: str) -> str:
    """A paragraph that names the cases of a state; nothing if there are none."""
    names = [name for name, case in in_order(found) if case["behavior"] == state]
    return f"\n{title}: {', '.join(names)}.\n" if names else ""
