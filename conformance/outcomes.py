"""Cases, and what became of each."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import differences

Check = Callable[[], None]
Case = tuple[str, Check]


class Unmet(Exception):
    """The server did something else than a case expects."""


class Skipped(Exception):
    """What a case needs is not there."""


@dataclass
class Outcome:
    client: str
    records: str
    name: str
    state: str  # passed, failed, differs, skipped
    told: str = ""


@dataclass
class Tally:
    outcomes: list[Outcome] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    # With RERUN=1, as .ci/run has it, so many cases that failed run once more.
    reruns_left: int = 3 if os.environ.get("RERUN") == "1" else 0

    def may_rerun(self) -> bool:
        self.reruns_left -= 1
        return self.reruns_left >= 0

    def count(self, state: str) -> int:
        return sum(outcome.state == state for outcome in self.outcomes)

    def note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.state in ("failed", "skipped"):
            told = " ".join(outcome.told.split())
            print(f"{outcome.state}: {outcome.client}, {outcome.records} records: "
                  f"{outcome.name}: {told}", flush=True)


def expect(condition: object, told: str) -> None:
    if not condition:
        raise Unmet(told[-600:])


def run(tally: Tally, client: str, records: str, cases: Iterable[Case]) -> None:
    """Runs each case; whatever it raises is its failure, and no other's."""
    began, before = time.monotonic(), len(tally.outcomes)
    for name, check in cases:
        state, told = state_of(check)
        known = differences.of(client, records, name)
        if state == "failed" and not known and tally.may_rerun():
            first, (state, told) = told, state_of(check)
            if state == "passed":
                print(f"unsteady: {client}, {records} records: {name}: {first}", flush=True)
        if known and state == "failed":
            state, told = "differs", known.reason
            known.seen.add(records)
        elif known and state == "passed" and not known.is_some:
            state, told = "failed", f"it differs no longer, and is in the list: {known.reason}"
        tally.note(Outcome(client, records, name, state, told))
    for known in differences.gone(client, records):
        tally.note(Outcome(client, records, known.pattern[1:], "failed",
                           f"none differs any longer, and the list has it: {known.reason}"))
    count = len(tally.outcomes) - before
    say(f"{client}, {records} records: {count} cases, {time.monotonic() - began:.1f} s")


def state_of(check: Check) -> tuple[str, str]:
    try:
        check()
    except Skipped as reason:
        return "skipped", str(reason)
    except subprocess.TimeoutExpired as error:
        return "failed", f"{error.cmd[0]} did not end within {error.timeout} s"
    except (Unmet, OSError, ValueError, LookupError) as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def first_line(command: list[str]) -> str:
    """The first line that a program says about itself; nothing if it cannot be started."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return (done.stdout.strip() or done.stderr.strip()).split("\n")[0].strip()
    return ""
